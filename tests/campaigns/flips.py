"""Damaged files: each answer equals the untouched one, or is one sentence.

**Promised.** What mmcnb writes is checked whole: stores of rows and of labels, of this
release and of those before, model files and checkpoints. Where a bit of one is turned,
a file is cut, lengthened, lost, partly zeroed or replaced by one of another version,
where two chunks are exchanged or a place of its metadata is changed, every answer is,
bit for bit, that of the untouched one, or `mmcnb.InputError` in one sentence.

**Not promised.** What others write has no checksums: plain Zarr arrays, AnnData,
``.npy``, text and tables. There a turned bit may be another number, so that any answer
is one; but there is an answer or one sentence, never a traceback. The same holds for a
store of ours whose whole inventory is gone: ``info``, ``verify`` and ``fit`` then say
that it has no checksums. Such tries are counted as "another" and "unchecked". HDF5 is
not tried: its own library may hang or crash on a damaged file.

A try damages one place of a copy, asks one question of it and compares the answer with
that of the original.
"""

import contextlib
import functools
import hashlib
import io
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import mmcnb
from mmcnb import cli
from mmcnb.samples import open_samples
from mmcnb.samples.row_index import RowIndex
from mmcnb.stores import (
    LabelsWriter,
    _write,
    convert,
    create_csr_store,
    create_dense_store,
    describe_store,
    open_index,
    verify_store,
)

# Internal: tables of labels are written and damaged as a fit writes them.
from mmcnb.stores.label_table import TableWriter, read_values

# Internal: stored labels are read back without a model.
from mmcnb.stores.labels import read_column, stored_classes
from tests.campaigns import _damage

TRIES = 6000
CI_TRIES = 60
SECONDS = 120
ROWS = 600
RELEASES = Path(__file__).parents[1] / "data/stores"


class Kind(NamedTuple):
    """A kind of files: how one is written, what is asked of it, and whether its answers are promised."""

    write: Callable[[Path, int], Path]
    questions: dict[str, Callable[[Path], Any]]
    checked: bool


# -- what is written -------------------------------------------------------------------


def rows(version: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers in two clusters, half of them 0, and classes; each version has others."""
    random = np.random.default_rng(version)
    y = random.integers(0, 2, ROWS)
    X = random.integers(1, 60, (ROWS, 4)) * (random.random((ROWS, 4)) < 0.5) + 90 * y[
        :, None
    ] * [1, 0, 1, 0]
    return X, y


def ours(layout: str, folder: Path, version: int) -> Path:
    """A store of several chunks in each array."""
    X, y = rows(version)
    path = folder / "rows.zarr"
    _write.CSR_CHUNK_VALUES = 300
    _write.LABEL_CHUNK_ROWS = 200
    if layout == "csr":
        with create_csr_store(path, 4) as writer:
            writer.append(scipy.sparse.csr_array(X.astype("f4")), y=y)
            writer.append_index(np.arange(ROWS) * (version + 2))
            writer.class_names = ["first", "second"]
        return path
    with create_dense_store(
        path, 4, dtype="u1" if layout == "bytes" else "f4", chunk_rows=100
    ) as writer:
        writer.append(X, y)
        writer.append_index(np.array([f"row {version} {row}" for row in range(ROWS)]))
        writer.class_names = ["first", "second"]
        writer.feature_names = ["a", "b", "c", "d"]
    return path


def release(name: str, folder: Path, version: int) -> Path:
    """A store that release 0.2.0 wrote; the other version is one of the same names of files."""
    source = {"dense": "bytes", "bytes": "dense"}.get(name, name) if version else name
    shutil.copytree(RELEASES / f"0.2.0/{source}.zarr", folder / "rows.zarr")
    return folder / "rows.zarr"


def labels_store(folder: Path, version: int) -> Path:
    """Labels of two chunks."""
    labels = np.arange(70_000) // (500 + version) % 7
    with LabelsWriter(folder / "labels.zarr", len(labels)) as writer:
        starts = range(0, len(labels), writer.chunk_rows)
        writer.finish_chunks(
            [writer.sink().write(i, labels[i : i + writer.chunk_rows]) for i in starts]
        )
    return folder / "labels.zarr"


def plain_zarr(zarr_format: int, folder: Path, version: int) -> Path:
    """A group with an array X and classes, as a user of Zarr writes it."""
    import zarr

    X, y = rows(version)
    group: Any = zarr.open_group(
        folder / "rows.zarr", mode="w", zarr_format=zarr_format
    )
    group.create_array("X", shape=X.shape, dtype="f4", chunks=(100, 4))[:] = X
    group.create_array("y", shape=y.shape, dtype="i8", chunks=(200,))[:] = y
    return folder / "rows.zarr"


def anndata_store(layout: str, folder: Path, version: int) -> Path:
    """A folder of AnnData, of Zarr format 2 where it is sparse, otherwise 3."""
    import anndata
    import pandas as pd

    X, _ = rows(version)
    names = pd.DataFrame(index=[f"cell {row}" for row in range(ROWS)])
    genes = pd.DataFrame(index=[f"gene {column}" for column in range(4)])
    values = (
        scipy.sparse.csr_matrix(X.astype("f4")) if layout == "csr" else X.astype("f4")
    )
    with anndata.settings.override(zarr_write_format=2 if layout == "csr" else 3):
        anndata.AnnData(values, obs=names, var=genes).write_zarr(folder / "rows.zarr")
    return folder / "rows.zarr"


def a_file(name: str, folder: Path, version: int) -> Path:
    """A file of rows that is no store."""
    X, y = rows(version)
    path = folder / name
    if name.endswith(".npy"):
        np.save(path, X.astype("f4"))
    elif name.endswith(".npz"):
        scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(X.astype("f4")))
    elif name.endswith(".libsvm"):
        from sklearn.datasets import dump_svmlight_file

        dump_svmlight_file(X[:150], y[:150], str(path), zero_based=False)
    else:
        import pandas as pd

        frame = pd.DataFrame(X[:150], columns=list("abcd")).assign(kind=y[:150])
        write = {
            ".csv": frame.to_csv,
            ".parquet": frame.to_parquet,
            ".arrow": frame.to_feather,
        }
        write[path.suffix](
            path, **({"index": False} if path.suffix != ".arrow" else {})
        )
    return path


def table(name: str, folder: Path, version: int) -> Path:
    """Labels as ``--labels`` writes them to a table."""
    with TableWriter(folder / name, RowIndex(ROWS)) as writer:
        writer.append(
            {"label": (np.arange(ROWS) // (50 + version) % 3).astype(np.int32)}
        )
    return folder / name


def model_file(folder: Path, version: int) -> Path:
    """A model."""
    estimator("", version).fit(rows(version)[0].astype("f4")).save(
        folder / "rows.model"
    )
    return folder / "rows.model"


def checkpoint(folder: Path, version: int) -> Path:
    """A store, and a checkpoint of a fit to it that was stopped before its last pass."""
    both = folder / "both"
    both.mkdir()
    store = ours("dense", both, version)
    estimator(str(both / "checkpoint"), 0).fit(store)
    passes = sorted((both / "checkpoint/passes").iterdir())
    passes[-1].unlink()
    run = both / "checkpoint/run.json"
    run.write_text(run.read_text().replace('"finished": true', '"finished": false'))
    return both


# -- what is asked ---------------------------------------------------------------------


def estimator(folder: str = "", seed: int = 0) -> Any:
    """A quick estimator that makes several passes."""
    return mmcnb.UnsupervisedRLS(
        n_clusters=2,
        n_landmarks=20,
        n_init=1,
        random_state=seed,
        n_jobs=1,
        checkpoint=folder or None,
    )


@functools.cache
def fitted(columns: int) -> Any:
    """A model for rows of so many columns."""
    return estimator().fit(
        np.random.default_rng(9).integers(0, 200, (200, columns)).astype("f4")
    )


def ask_fit(path: Path) -> Any:
    """Labels and the objective of a fit."""
    model = estimator().fit(path)
    return np.asarray(model.labels_), float(model.objective_)


def ask_predict(path: Path) -> Any:
    """Labels by a model that was fitted to other rows."""
    return np.asarray(fitted(open_samples(path).n_features).predict(path))


def ask_single_rows(path: Path) -> Any:
    """A few rows."""
    samples = open_samples(path)
    found = samples.gather(np.arange(0, samples.n_samples, 37))
    return [np.asarray(part) for part in found] if isinstance(found, tuple) else found


def ask_convert(path: Path) -> Any:
    """What a copy holds."""
    out = path.parent / "copy.zarr"
    taken = convert(path, out, progress=False)
    samples = open_samples(out)
    return (
        samples.digest,
        stored_classes(out),
        open_index(out),
        samples.feature_names,
        taken,
    )


def ask_info(path: Path) -> Any:
    """What ``info`` says; the size on the disk is that of the damaged store."""
    return {
        name: value
        for name, value in describe_store(path).items()
        if name != "bytes_on_disk"
    }


def ask_command(*words: str) -> Callable[[Path], Any]:
    """What a command prints: one object, or one line of error and the code 2."""

    def ask(path: Path) -> Any:
        out = io.StringIO()
        err = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main([words[0], str(path), *words[1:], "--json"])
        if code == 0:
            return {
                key: value
                for key, value in json.loads(out.getvalue()).items()
                if key != "bytes_on_disk"
            }
        told = [line for line in err.getvalue().splitlines() if "Warning" not in line]
        assert code == 2, f"the command ended with {code}"
        raise mmcnb.InputError(
            "\n".join(told[-2:] if "Traceback" in err.getvalue() else told[-1:])
        )

    return ask


def ask_model(path: Path) -> Any:
    """Labels by the model, and what it was."""
    model = mmcnb.load(path)
    return (
        np.asarray(model.predict(rows(0)[0].astype("f4"))),
        repr(model.get_params()),
        model.objective_,
    )


def ask_resumed(path: Path) -> Any:
    """Labels and the objective of the fit that goes on."""
    model = estimator(str(path / "checkpoint")).fit(path / "rows.zarr")
    return np.asarray(model.labels_), float(model.objective_)


ROWS_ALONE = {
    "fit": ask_fit,
    "predict": ask_predict,
    "single rows": ask_single_rows,
    "convert": ask_convert,
}
OF_STORES = ROWS_ALONE | {
    "verify": lambda path: verify_store(path, progress=False),
    "info": ask_info,
    "classes": stored_classes,
    "names": lambda path: (open_index(path), open_samples(path).feature_names),
    "mmcnb verify": ask_command("verify"),
    "mmcnb info": ask_command("info"),
}
OF_LABELS = {
    "labels": lambda path: read_column(path, "y"),
    "verify": OF_STORES["verify"],
}
OF_TABLES = {"labels": read_values}

KINDS = {
    **{
        name: Kind(functools.partial(ours, name), OF_STORES, True)
        for name in ("dense", "bytes", "csr")
    },
    "labels": Kind(labels_store, OF_LABELS, True),
    "model": Kind(model_file, {"load": ask_model}, True),
    "checkpoint": Kind(checkpoint, {"resume": ask_resumed}, True),
    **{
        f"{name} of 0.2.0": Kind(functools.partial(release, name), OF_STORES, True)
        for name in ("dense", "bytes", "csr")
    },
    "labels of 0.2.0": Kind(functools.partial(release, "labels"), OF_LABELS, True),
    **{
        f"Zarr {n}": Kind(functools.partial(plain_zarr, n), OF_STORES, False)
        for n in (2, 3)
    },
    **{
        f"AnnData {n}": Kind(functools.partial(anndata_store, n), OF_STORES, False)
        for n in ("dense", "csr")
    },
    **{
        name: Kind(functools.partial(a_file, name), ROWS_ALONE, False)
        for name in ("rows.npy", "rows.parquet")
    },
    **{
        name: Kind(functools.partial(a_file, name), {"convert": ask_convert}, False)
        for name in ("rows.npz", "rows.csv", "rows.libsvm", "rows.arrow")
    },
    **{
        name: Kind(functools.partial(table, name), OF_TABLES, False)
        for name in ("l.csv", "l.parquet")
    },
}
DAMAGES: dict[str, _damage.Damage] = {
    "flip": _damage.flip,
    "truncate": _damage.truncate,
    "swap": _damage.swap,
    "stale": _damage.stale,
    "metadata": _damage.metadata,
    "delete": _damage.delete,
    "hole": _damage.hole,
    "grow": _damage.grow,
}


# -- a try -----------------------------------------------------------------------------


@functools.cache
def original(kind: str, version: int) -> Path:
    """The untouched file or folder, written once in a process."""
    return KINDS[kind].write(
        Path(tempfile.mkdtemp(prefix=f"flips-{version}-")), version
    )


@functools.cache
def known(kind: str, question: str) -> str:
    """The untouched answer, of a copy, as some questions write beside what they are asked of."""
    with tempfile.TemporaryDirectory() as folder:
        return answer(copied(kind, Path(folder)), KINDS[kind].questions[question])


def copied(kind: str, folder: Path) -> Path:
    """A copy of the untouched file or folder."""
    source = original(kind, 0)
    (shutil.copytree if source.is_dir() else shutil.copyfile)(
        source, folder / source.name
    )
    return folder / source.name


def answer(path: Path, ask: Callable[[Path], Any]) -> str:
    """An answer as text, to be compared; the place of the file is left out."""
    return _text(ask(path)).replace(str(path.parent), "")


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        bits = (
            json.dumps(value.tolist()).encode()
            if value.dtype.kind in "TOU"
            else value.tobytes()
        )
        return f"{value.dtype} {value.shape} {hashlib.sha256(bits).hexdigest()}"
    if isinstance(value, dict):
        return str({name: _text(part) for name, part in value.items()})
    return (
        str([_text(part) for part in value])
        if isinstance(value, list | tuple)
        else repr(value)
    )


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """Damage one place, ask one question, and judge the answer."""
    random = np.random.default_rng(seed)
    name = list(KINDS)[seed % len(KINDS)]
    kind = KINDS[name]
    question = list(kind.questions)[int(random.integers(len(kind.questions)))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        untouched = known(name, question)
        path = copied(name, folder)
        other = original(name, 1)
        how = ""
        done = None
        while done is None:
            how = list(DAMAGES)[int(random.integers(len(DAMAGES)))]
            damage = (
                _damage.metadata_of_checked
                if how == "metadata" and kind.checked
                else DAMAGES[how]
            )
            done = damage(path, other, random)
        facts = {"kind": name, "question": question, "damage": how, "what": done}
        try:
            found = answer(path, kind.questions[question])
        except mmcnb.InputError as error:
            if len(str(error).splitlines()) != 1:
                raise AssertionError(f"{facts}: no one sentence: {error}") from error
            return facts | {
                "answer": "refused",
                "sentence": str(error).replace(str(folder), ""),
            }
        except Exception as error:
            error.add_note(str(facts))
            raise
        if found == untouched:
            return facts | {"answer": "same"}
        assert not kind.checked or is_told(path), (
            f"{facts}: {found[:300]} where {untouched[:300]} was"
        )
        return facts | {"answer": "unchecked" if kind.checked else "another"}


def is_told(path: Path) -> bool:
    """Whether a store of ours has lost its inventory and says so."""
    return (
        path.suffix == ".zarr" and not verify_store(path, progress=False)["checksummed"]
    )
