"""What a reader copies from README and docs runs, and prints or finds what the page says."""

import ast
import csv
import importlib
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

import mmcnb
from mmcnb.cli import build_parser, main
from mmcnb.stores import (
    convert,
    create_dense_store,
    open_class_labels,
    open_index,
    verify_store,
)

try:
    from sklearn import callback
except ImportError:
    callback = None

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
PAGES = {
    page.stem: page.read_text()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}


def blocks(page, language="python"):
    """The blocks of code of a page."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL
    )


def commands(page):
    """The commands of ours that a page shows to be typed, without prompt and comment."""
    for line in "".join(blocks(page, "(?:console|sh)")).splitlines():
        for command in line.removeprefix("$ ").split("&&"):
            words = shlex.split(command, comments=True)
            if words and Path(words[0]).name == "mmcnb":
                yield words[1:]


def write(path, X):
    with create_dense_store(path, n_features=X.shape[1], dtype="float64") as store:
        store.append(X)


def write_tables():
    """Write customers.csv and orders.csv, which the pages offer for download."""
    for name in ("customers", "orders"):
        script = ROOT / "docs" / "_scripts" / f"{name}.py"
        runpy.run_path(str(script), run_name="__main__")


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """What a page takes for granted: rows in memory and in stores, a table, cells and a fit."""
    anndata = pytest.importorskip("anndata")
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(return_X_y=True)
    X = np.ascontiguousarray(X[:600])
    for name in ("rows.zarr", "digits.zarr", "new.zarr"):
        write(name, X)
    np.save("rows.npy", X)
    write_tables()
    sparse = sp.csr_array(X)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = (
        wide.indices.astype(np.int64),
        wide.indptr.astype(np.int64),
    )
    cells = anndata.AnnData(X.astype(np.float32), obsm={"X_pca": X.astype(np.float32)})
    cells.obsp["distances"] = kneighbors_graph(X, 15, mode="distance")
    near = kneighbors_graph(X, 15)
    cells.obsp["connectivities"] = near.maximum(near.T)
    frame = pd.DataFrame(X, columns=[f"pixel {number}" for number in range(X.shape[1])])
    frame["kind"] = np.where(X[:, 20] > 4, "dark", "light")
    model = mmcnb.MaximumMarginClustering(n_clusters=10, random_state=0).fit(X)
    rows = {
        "X": X,
        "y": y[:600],
        "sparse": sparse,
        "wide": wide,
        "adata": cells,
        "frame": frame,
    }
    return {
        "mmcnb": mmcnb,
        "model": model,
        "estimator": model,
        "labels": model.labels_,
        **rows,
    }


# The code of these pages runs in tests of its own.
OF_OTHER_TESTS = ("own_kernels", "integrations", "tables")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page) and page not in OF_OTHER_TESTS]
)
def test_the_code_of_a_page_runs(page, reader):
    for code in blocks(page):
        if 'create_dense_store("rows.zarr"' in code:
            shutil.rmtree("rows.zarr")
        if "bertopic" in code and find_spec("bertopic") is None:
            continue
        if "tcp://" in code:  # in place of the cluster of the page, one in this process
            code = re.sub(
                r'"tcp://[^"]*"',
                "processes=False, n_workers=1, dashboard_address=None",
                code,
            )
        exec(code, reader)


@pytest.mark.filterwarnings("ignore")  # of the libraries, about each other
def test_the_code_with_other_libraries_runs(reader, subtests):
    for code in blocks("integrations"):
        imported = re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)
        with subtests.test(imported[0]):
            for library in imported:
                if find_spec(library) is None:
                    pytest.skip(f"{library} is installed by its users")
            exec(code, reader)


def test_the_pages_find_what_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    choice = {}
    graph = {}
    houses = {}
    exec(blocks("choice")[0], choice)
    model = choice["model"]
    assert (model.n_clusters_, model.report_["trust"]["level"]) == (7, "high")
    for code in blocks("graph"):
        exec(code, graph)
        assert adjusted_rand_score(graph["y"], graph["model"].labels_) == 1.0
    write_tables()
    for code in blocks("tables"):
        exec(code, houses)
        if "houses" in houses:
            break
    assert sorted(houses["orders"]["cluster"].unique()) == [0, 1, 2]
    visits = mmcnb.read_table(houses["visits"])
    assert visits.feature_names == ["minutes", "spent"]
    store = houses["houses"]
    assert store.feature_names == ["area", "heating_gas", "heating_wood"]
    assert open_class_labels(store).tolist() == [0, 1, 0]
    assert open_index(store).tolist() == ["a", "b", "c"]
    assert store.block(0, 3).tolist() == [[51.5, 1, 0], [140, 0, 1], [95.75, 1, 0]]


SAVE = """
import own
own.np.savez("result.npz", K=own.K, rows=own.rows.toarray(), basis=own.B_sparse, labels=own.labels,
    landmarks=own.landmarks, gamma=own.gamma, X=own.X, drawn=own.drawn, nystroem=own.nystroem,
    y=own.y, coef=own.coef, plane=own.plane, violation=own.violation, vectors=own.basis, beta=own.beta)
"""


def test_compiled_routines_of_a_reader_do_what_their_page_says(tmp_path):
    # A file, because Numba keeps no cache for code that has none; a process, because
    # prange starts threads.
    (tmp_path / "own.py").write_text("\n".join(blocks("own_kernels")))
    command = [sys.executable, "-W", "error", "-c", SAVE]
    done = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert f"# {done.stdout.strip()}\n" in PAGES["own_kernels"]
    own = np.load(tmp_path / "result.npz")
    K = np.exp(-0.5 * cdist(own["rows"], own["basis"], "sqeuclidean"))
    np.testing.assert_allclose(own["K"], K, atol=1e-12)
    rows = zarr.open_array(tmp_path / "rows.zarr")[:]
    values = np.exp(-own["gamma"] * cdist(rows, own["landmarks"], "sqeuclidean"))
    np.testing.assert_array_equal(own["labels"], values.argmax(axis=1))

    def kernel(one, other):
        return np.exp(-own["gamma"] * cdist(one, other, "sqeuclidean"))

    # The most violated constraint, eq. (12).
    X = own["X"]
    features = kernel(X, X[own["drawn"]]) @ own["nystroem"]
    margins = own["y"] * (features @ own["coef"])
    signs = np.where(margins <= 1, own["y"], 0)
    np.testing.assert_allclose(own["plane"], signs @ features / len(X), atol=1e-9)
    assert own["violation"] == pytest.approx(np.maximum(1 - margins, 0).mean())

    # Steps of eq. (46) lead from the starts to the vectors; eq. (49) has their weights.
    vectors = own["vectors"]
    gram = kernel(vectors, vectors)
    mean = kernel(X, vectors).mean(axis=0)
    np.testing.assert_allclose(gram @ own["beta"], mean, atol=1e-9)
    for p in range(len(vectors)):
        points = np.vstack([X, vectors[:p]])
        before = np.linalg.pinv(gram[:p, :p]) @ mean[:p]
        z = np.concatenate([np.full(len(X), 1 / len(X)), -before])
        b = X[p]
        for _ in range(50):
            old = b
            weights = z * kernel(points, b[None])[:, 0]
            b = weights @ points / weights.sum()
            if ((b - old) ** 2).sum() <= 1e-8 / own["gamma"]:
                break
        np.testing.assert_allclose(vectors[p], b, atol=1e-8)


# -- commands --------------------------------------------------------------------------


def test_each_command_can_be_read():
    parser = build_parser()
    for page in PAGES:
        for words in commands(page):
            assert parser.parse_args(words).verb == words[0], page


def test_the_tables_for_download_are_those_of_the_scripts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tables()
    for name in ("customers.csv", "orders.csv"):
        offered = ROOT / "docs" / "static" / name
        assert offered.read_bytes() == Path(name).read_bytes()


@pytest.mark.parametrize("page", ["README", "index"])
def test_the_first_screen_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_tables()
    for words in commands(page):
        if words[0] != "demo":
            assert main(words) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    (code,) = blocks(page)
    exec(code, {})
    *tables, sentences = blocks(page, "text")
    assert sentences in printed
    assert sentences in capsys.readouterr().out
    table = Path("customers.csv").read_text()
    with_clusters = Path("with-clusters.csv").read_text()
    assert all(with_clusters.startswith(head) for head in tables[-1:])
    assert all(table.startswith(head) for head in tables[:-1])
    # Of 300 customers a few lie between the kinds that the script draws.
    kinds = np.random.default_rng(0).choice(3, 300, p=[0.45, 0.35, 0.2])
    labels = pd.read_csv("with-clusters.csv")["cluster"]
    assert adjusted_rand_score(kinds, labels) > 0.95
    if page == "README":
        loaded = mmcnb.load("customers.model")
        assert (loaded.predict("customers.csv") == labels).all()
        report = Path("page.html").read_text(encoding="utf-8")
        assert "Cluster 2 (26 %): " in report


def test_the_page_of_tables_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_tables()
    names = {}
    steps = re.findall(r"^```(python|console)\n(.*?)^```", PAGES["tables"], re.M | re.S)
    for language, lines in steps:
        if language == "python":
            exec(lines, names)
            continue
        for line in lines.splitlines():
            assert main(shlex.split(line)[2:]) == 0, capsys.readouterr().err
    head, head_with_clusters = blocks("tables", "text")
    assert Path("orders.csv").read_text("cp1252").startswith(head)
    assert head_with_clusters in Path("with-clusters.csv").read_text("cp1252")


def test_the_first_steps_print_what_their_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(blocks("get_started")[0], {})
    for words in commands("get_started"):
        if words[0] != "demo":
            assert main(words) == 0, capsys.readouterr().err
    said = {line[:16] for line in capsys.readouterr().out.splitlines()}
    (printed,) = blocks("get_started", "text")
    # Another processor may move a row or two, so the words are compared.
    assert {line[:16] for line in printed.splitlines()} <= said


def test_the_sentences_about_wines_are_those_of_their_page():
    quoted = blocks("reading_a_fit", "text")
    [of_sentences] = [block for block in quoted if block.startswith("Cluster 0")]
    [of_tree] = [block for block in quoted if block != of_sentences]
    wines = load_wine(as_frame=True).data
    model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(wines)
    explanation = model.explain(wines)
    told = str(explanation).splitlines()
    for line, sentence in zip(of_sentences.splitlines(), told, strict=True):
        assert sentence.startswith(line.removesuffix("..."))
    assert str(explanation.tree).splitlines() == of_tree.splitlines()


# -- answers ---------------------------------------------------------------------------

with (ROOT / "docs/questions.csv").open(newline="", encoding="utf-8") as file:
    CODES = [row["code"].strip("`") for row in csv.DictReader(file)]
SHOWN = [code for code in CODES if code and not code.startswith("tests/")]


def test_the_code_of_an_answer_does_something(reader, capsys):
    polars = pytest.importorskip("polars")
    reader |= {
        "np": np,
        "convert": convert,
        "verify_store": verify_store,
        "polars": polars,
    }
    reader |= {"ProgressBar": getattr(callback, "ProgressBar", None)}
    for code in SHOWN:
        # which scikit-learn has from 1.9 on
        if callback is not None or "callbacks" not in code:
            files = set(Path().iterdir())
            names = reader | {"model": deepcopy(reader["model"])}
            *others, last = ast.parse(code).body
            exec(compile(ast.Module(others, []), code, "exec"), names)
            value = eval(compile(ast.Expression(last.value), code, "eval"), names)
            assert value is not False, code
            assert (
                value is not None
                or capsys.readouterr().out
                or set(Path().iterdir()) > files
            ), code


# -- migration -------------------------------------------------------------------------

LINES = re.findall(r"^\| `(.+)` \| `(.+)` \|$", PAGES["migration"], re.MULTILINE)
SENTENCES = re.findall(r"`([^`]+)`", PAGES["migration"].partition("| 0.2 |")[0])
GONE = (AttributeError, ImportError, KeyError, TypeError, mmcnb.InputError, SystemExit)


@pytest.fixture
def do(tmp_path, monkeypatch):
    """Run a line: a command of ours, a name with its module, or an expression."""
    monkeypatch.chdir(tmp_path)
    X, y = make_blobs(200, centers=2, n_features=3, random_state=0)
    write("rows.zarr", X)
    np.savetxt("rows.csv", X, delimiter=",", header="a,b,c", comments="")
    np.savetxt("labels.csv", y, fmt="%d", header="cluster", comments="")
    names = {name: getattr(mmcnb, name) for name in mmcnb.__all__ if name[0].isupper()}
    names |= {"mmcnb": mmcnb, "X": X, "K": X @ X.T}
    names["model"] = mmcnb.MaximumMarginClustering(2, random_state=0).fit(X)
    names["means"] = mmcnb.KernelKMeans(2, random_state=0).fit(X)
    names["machine"] = mmcnb.SparseKernelMMC(random_state=0).fit(X)

    def run(line):
        if line.startswith("mmcnb "):
            if code := main(line.split()[1:]):
                raise SystemExit(code)
        elif re.fullmatch(r"(mmcnb|benchmarks|sklearn)(\.\w+)+", line):
            module, _, name = line.rpartition(".")
            getattr(importlib.import_module(module), name)
        else:
            eval(line, dict(names))

    return run


def test_each_new_line_of_the_migration_runs_and_each_old_one_no_longer_does(do):
    assert len(LINES) > 20
    for line in (*(new for _, new in LINES), *SENTENCES):
        do(line.replace("\n", " "))
    for line, _ in LINES:
        with pytest.raises(GONE):
            do(line)
