"""The journal of a study, which records the results of runs, so that no run is computed twice.

A journal uses a recorded run only if the code and the parameters are the same. Several
processes may write to one journal.
"""

import ast
import hashlib
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Self

import pandas as pd
from filelock import FileLock
from threadpoolctl import threadpool_info

import mmcnb
from benchmarks.run import (
    FAILED,
    KEYS,
    NO_DATA,
    OK,
    Compute,
    Options,
    Run,
    as_json,
    computed,
)

FORMAT = 2
MEASURES = ("seconds", "compile_seconds", "peak_mib", "n", "d", "digest")
COLUMNS = [
    "study",
    "part",
    "dataset",
    "protocol",
    "method",
    "parameters",
    "seed",
    "metric",
    "value",
    "seconds",
    "compile_seconds",
    "peak_mib",
    "n",
    "d",
    "status",
    "reason",
    "versions",
    "digest",
]
RECORDED = (*KEYS, "settings", "code", "status", "reason", "found", "versions")
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "pandas", "zarr", "piqp")
PEERS = (  # only those that are installed
    "evoc",
    "fast-hdbscan",
    "fast-plscan",
    "genieclust",
    "igraph",
    "kmodes",
    "lumbermark",
    "stepmix",
    "umap-learn",
)
_STUDIES = "benchmarks.studies"
MAKES_TABLES = (  # modules that do not affect runs
    "benchmarks.tables",
    *(f"{_STUDIES}._{study}_tables" for study in ("choice", "columns", "number")),
)
Record = dict[str, Any]
Identity = tuple[Any, ...]


class Journal:
    """Results of a study so far, in ``DIR/STUDY.jsonl``; several processes may share it.

    Lines are appended under a lock and never changed. Runs that other code recorded are
    ignored.

    Parameters
    ----------
    study : str
        Name of the study.
    options : Options
        Folder, scale, rows, jobs, and whether failed runs are computed again.
    code : str
        Digest of the code, from `code_digest`.

    Raises
    ------
    InputError
        If the file is damaged, or was written in another format, at another scale or
        with other rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from benchmarks.journal import Journal
    >>> from benchmarks.run import Options, Run, frame_of_runs
    >>> runs = frame_of_runs(lambda: [Run("heart", "guess", 0)])()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal("example", Options(Path(folder)), "of today") as journal:
    ...         results = journal.results(runs, lambda run: {"error": 0.5})
    >>> results[["dataset", "method", "error", "status"]].to_numpy().tolist()
    [['heart', 'guess', 0.5, 'ok']]
    """

    def __init__(self, study: str, options: Options, code: str) -> None:
        if find_spec("pyarrow") is None:
            raise mmcnb.InputError(
                "the frames need pyarrow: pip install 'mmcnb[benchmarks]'."
            )
        self.study = study
        self.options = options
        self.code = code
        self.path = options.out / f"{study}.jsonl"
        self._records: dict[Identity, Record] = {}
        # Identities of runs that other code recorded.
        self._outdated: set[Identity] = set()
        self._end = self._lines = 0  # position up to which the file was read
        self.refresh()

    def results(self, runs: pd.DataFrame, compute: Compute) -> pd.DataFrame:
        """Compute the runs that are not recorded yet, and return one row per run.

        Parameters
        ----------
        runs : DataFrame
            One row per `Run`, with distinct identities.
        compute : callable
            The function ``compute`` of a `Section`.

        Returns
        -------
        DataFrame
            In the order of ``runs``: part, dataset, protocol, method, parameters (JSON
            text), seed, status, reason; each parameter and each metric as a column of
            its own, NaN if a run has none.

        Raises
        ------
        InputError
            If no run could be computed.
        ValueError
            If two runs have the same identity.
        """
        asked = [Run(**row) for row in runs.to_dict("records")]
        if len({run.identity for run in asked}) < len(asked):
            raise ValueError(f"{self.study}: two runs have the same identity.")
        self.refresh()
        lost = self._compute([run for run in asked if not self._has(run)], compute)
        results = pd.DataFrame(
            [self._wide(run, lost.get(run.identity)) for run in asked]
        )
        if not (results["status"] == OK).any():
            raise mmcnb.InputError(
                f"no run could be computed: {results['reason'].iloc[0]}"
            )
        return results

    @property
    def failed(self) -> int:
        """Number of recorded runs that failed."""
        return sum(record["status"] == FAILED for record in self._records.values())

    def refresh(self) -> None:
        """Read new records, including those of other processes, and cut off an incomplete last line."""
        if os.path.lexists(self.path) and not self.path.is_file():
            raise mmcnb.InputError(
                f"{self.path} is not a regular file: give another --out or delete it."
            )
        if self.path.exists() and self.path.stat().st_size != self._end:
            with self._locked():
                pass

    def render(self) -> None:
        """Write the tidy frame of all runs of this code to ``DIR/STUDY.parquet``, atomically."""
        if not self.path.exists():
            return
        with self._locked():
            rows = [
                row for record in self._records.values() for row in self._tidy(record)
            ]
            frame = pd.DataFrame(rows, columns=COLUMNS).astype(
                {"value": float, "seed": "int64"}
            )
            if rows:
                with whole_file(self.path.with_suffix(".parquet")) as aside:
                    frame.to_parquet(aside, engine="pyarrow", index=False)

    def __enter__(self) -> Self:
        """Create the folder for the stores of the runs."""
        self.options.out.mkdir(parents=True, exist_ok=True)
        self._scratch = TemporaryDirectory(
            prefix=f".scratch-{self.study}-",
            dir=self.options.out,
            ignore_cleanup_errors=True,
        )
        self._folder = Path(self._scratch.name)
        return self

    def __exit__(self, *error: object) -> None:
        """Write the frame of the records so far, at the end and after an interruption."""
        try:
            self.render()
        finally:
            self._scratch.cleanup()

    def _has(self, run: Run) -> bool:
        """Return whether a run is recorded with all its settings; a failure counts unless it is retried."""
        if run.identity not in self._records or self._differs(run):
            return False
        return self._records[run.identity]["status"] == OK or not self.options.retry

    def _differs(self, run: Run) -> bool:
        """Return whether a run with the same identity was recorded by other code or with other settings."""
        if run.identity not in self._records:
            return run.identity in self._outdated
        return as_json(self._records[run.identity]["settings"]) != as_json(run.settings)

    def _compute(self, missing: Sequence[Run], compute: Compute) -> dict[Identity, str]:
        """Compute and record runs; return the reasons of the runs whose data are missing."""
        lost: dict[Identity, str] = {}
        if outdated := sum(map(self._differs, missing)):
            say(
                f"{self.study}: {outdated} recorded runs are of other code or settings; computing them again"
            )
        runs = (
            run._replace(folder=str(self._folder))
            for run in missing
            if not self._has_now(run)
        )
        for done, (run, outcome) in enumerate(
            computed(compute, runs, self.options.jobs), 1
        ):
            reason = outcome["reason"]
            if outcome["status"] == NO_DATA:
                if reason not in lost.values():
                    say(f"{run.dataset} is left out: {reason}")
                lost[run.identity] = reason
                continue
            self._append(run, outcome)
            name = f"{self.study} {done}/{len(missing)}: {' '.join(filter(None, run.identity[:4]))}"
            say(
                f"{name}, seed {run.seed}: {reason or format(outcome['found']['seconds'], '.3g') + ' s'}"
            )
        return lost

    def _has_now(self, run: Run) -> bool:
        """Return `_has` after reading the records that other processes may have added."""
        self.refresh()
        return self._has(run)

    # -- the file ----------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """Open the file, read it to its end, and lock it against other processes."""
        with FileLock(self.path.with_suffix(".lock")), self.path.open("a+b") as file:
            self._read(file)
            yield file

    def _append(self, run: Run, outcome: Record) -> None:
        """Record a run and flush it to the disk, so that a killed process loses at most this line."""
        values = {
            "parameters": dict(run.parameters),
            "settings": dict(run.settings),
            "code": self.code,
        }
        today = date.today().isoformat()
        told = {
            "versions": versions()
            | {"jobs": self.options.jobs, "commit": commit(), "date": today}
        }
        record = dict(zip(KEYS, run.identity, strict=True)) | values | outcome | told
        with self._locked() as file:
            lines = [record] if self._lines else [self._header(), record]
            file.write(
                "".join(
                    as_json(line, sort_keys=False) + "\n" for line in lines
                ).encode()
            )
            file.flush()
            os.fsync(file.fileno())
            self._read(file)

    def _read(self, file: BinaryIO) -> None:
        """Read the lines appended since the last read, and cut off an incomplete last line."""
        file.seek(self._end)
        content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            say(f"{self.path}: the last line is incomplete and is dropped")
            file.truncate(self._end + len(whole))
        for line in whole.splitlines():
            self._lines += 1
            self._accept(line)
        self._end += len(whole)

    def _accept(self, line: bytes) -> None:
        try:
            record = dict(json.loads(line))
        except (TypeError, ValueError):
            record = {}
        if self._lines == 1 and "format" in record:
            self._check_header(record)
            return
        if not set(RECORDED) <= set(record):
            raise mmcnb.InputError(
                f"{self.path}, line {self._lines}: this is not the record of a run; "
                "delete the line, or the file, and run again."
            )
        identity = Run(**{name: record[name] for name in KEYS}).identity
        if record["code"] == self.code:
            self._records[identity] = record
        else:
            self._outdated.add(identity)

    def _header(self) -> Record:
        options = self.options
        return {
            "format": FORMAT,
            "study": self.study,
            "scale": options.scale,
            "rows": options.rows,
        }

    def _check_header(self, found: Record) -> None:
        for name, mine in self._header().items():
            if found.get(name) != mine:
                raise mmcnb.InputError(
                    f"{self.path} was written with {name} {found.get(name)!r}, this run has {mine!r}; "
                    "give another --out or delete it."
                )

    # -- frames ------------------------------------------------------------------------

    def _wide(self, run: Run, lost: str | None) -> Record:
        """Return one row per run."""
        missing: Record = {"status": FAILED, "reason": lost, "found": {}}
        record = self._records[run.identity] if lost is None else missing
        told = {name: record[name] for name in ("status", "reason")}
        measures = {name: record["found"].get(name, math.nan) for name in MEASURES}
        identity = dict(zip(KEYS, run.identity, strict=True))
        return identity | told | dict(run.parameters) | measures | record["found"]

    def _tidy(self, record: Record) -> list[Record]:
        """Return one row per metric, and one row without a metric for a run that has none."""
        found = record["found"]
        texts = {name: as_json(record[name]) for name in ("parameters", "versions")}
        shared = {"study": self.study, "digest": ""} | record | found | texts
        numbers = {
            name: value
            for name, value in found.items()
            if isinstance(value, int | float)
        }
        metrics = {
            name: value for name, value in numbers.items() if name not in MEASURES
        } or {"": math.nan}
        return [
            shared | {"metric": name, "value": value} for name, value in metrics.items()
        ]


def code_digest(module: str) -> str:
    """Return the digest of the source files that determine the runs of a study: mmcnb, and `sources_of` the study."""
    library = sorted(Path(mmcnb.__file__ or "").parent.rglob("*.py"))
    digest = hashlib.sha256()
    for path in [*library, *sorted(sources_of(module))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def sources_of(module: str) -> set[Path]:
    """Return the files of a module and of all it imports from `benchmarks`, except modules that only make tables.

    Examples
    --------
    >>> from benchmarks.journal import sources_of
    >>> sorted(path.stem for path in sources_of("benchmarks.run"))
    ['protocol', 'run']
    """
    found: set[Path] = set()
    waiting = {module}
    while waiting:
        name = waiting.pop()
        path = Path(__file__).parents[1].joinpath(*name.split(".")).with_suffix(".py")
        if (
            name in MAKES_TABLES
            or not name.startswith("benchmarks.")
            or path in found
            or not path.exists()
        ):
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                waiting |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                waiting |= {
                    node.module,
                    *(f"{node.module}.{alias.name}" for alias in node.names),
                }
    return found


# -- shared by journals and tables -----------------------------------------------------


@cache
def versions() -> dict[str, Any]:
    """Return the versions of libraries, and the machine, on which a figure depends."""
    libraries = {name: version(name) for name in LIBRARIES}
    for name in PEERS:
        with suppress(PackageNotFoundError):
            libraries[name] = version(name)
    machine = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "processor": processor(),
        "BLAS": blas(),
    }
    return {"mmcnb": mmcnb.__version__, **libraries, **machine}


def processor() -> str:
    """Return the name of the processor; "" if the system does not say."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def blas() -> str:
    """Return the library, kernel and threads of NumPy's BLAS; "" if none is known."""
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            kernel = pool.get("architecture", "")
            words = (pool["internal_api"], kernel, f"(threads: {pool['num_threads']})")
            return " ".join(filter(None, words))
    return ""


@cache
def commit() -> str:
    """Return the commit of the checkout, with "-dirty" if files differ from it; "" outside of a checkout."""
    words = ("git", "describe", "--always", "--dirty", "--exclude=*")
    with suppress(OSError, subprocess.SubprocessError):
        folder = Path(__file__).parent
        return subprocess.run(
            words, cwd=folder, capture_output=True, check=True, text=True
        ).stdout.strip()
    return ""


def say(text: str) -> None:
    """Print progress on standard error."""
    print(f"benchmarks: {text}", file=sys.stderr, flush=True)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to ``path`` at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
