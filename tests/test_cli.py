"""The command line: the verbs, bad input, and outputs that are whole or absent."""

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import zarr

import mmcnb
from mmcnb._config import parse_bytes
from mmcnb.cli import build_parser, demo, main
from mmcnb.cli._outputs import check_paths, whole_outputs
from mmcnb.datasets import make_block, write_synthetic
from mmcnb.engine.plan import RowShape
from mmcnb.errors import InputError
from mmcnb.metrics import balanced_clustering_error

ROWS, FEATURES = 1500, 3
HINGE = ("--method", "sparse-kernel-mmc")


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "blobs.zarr"
    write_synthetic("blobs", path, ROWS, FEATURES, random_state=3)
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a store, and the model and labels a fit left there."""
    folder = tmp_path_factory.mktemp("fitted")
    write_synthetic("blobs", folder / "blobs.zarr", ROWS, FEATURES, random_state=3)
    outputs = ["--model", folder / "blobs.model", "--labels", folder / "labels.zarr"]
    code = main([str(word) for word in ["fit", folder / "blobs.zarr", *outputs, "--random-state", 0]])
    assert code == 0
    return folder


def run(capsys, *words):
    """Run one verb with --json; give its report."""
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refuse(capsys, *words):
    """Run one verb that must be refused; give its sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main([*map(str, words)]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.count("\n") == 1, streams.err
    assert streams.err.startswith("mmcnb: ")
    return streams.err


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


# The verbs


def test_fit_labels_are_the_estimators_and_good(fitted):
    labels = zarr.open_array(fitted / "labels.zarr", mode="r")[:]
    X, y = make_block("blobs", 0, ROWS, FEATURES, 3)
    assert balanced_clustering_error(y, labels) < 0.02
    np.testing.assert_array_equal(labels, mmcnb.MaximumMarginClustering(random_state=0).fit(X).labels_)
    assert names(fitted) == ["blobs.model", "blobs.zarr", "labels.zarr"]


def test_predict_gives_the_labels_of_the_fit(fitted, capsys):
    report = run(
        capsys, "predict", fitted / "blobs.model", fitted / "blobs.zarr", "--labels", fitted / "p.zarr"
    )
    first, again = (zarr.open_array(fitted / name, mode="r")[:] for name in ("labels.zarr", "p.zarr"))
    np.testing.assert_array_equal(first, again)
    assert report["n_samples"] == ROWS


def test_fit_reports_its_verdict(store, tmp_path, capsys):
    words = ["fit", store, *HINGE, "--model", tmp_path / "m", "--set", "gamma=median", "--random-state", 1]
    report = run(capsys, *words)
    assert report["n_samples"] == ROWS == sum(report["sizes"])
    assert report["w_norm"] > report["w_norm_random"] > 0
    assert report["labels"] is None
    assert report["peak_memory_bytes"] > 2**20
    assert names(tmp_path) == ["blobs.zarr", "m"]


def test_fit_words_its_verdict(store, tmp_path, capsys):
    assert main(["fit", str(store), *HINGE, "--model", str(tmp_path / "m"), "--set", "gamma=0.1"]) == 0
    out = capsys.readouterr().out
    for word in (
        "cluster sizes",
        "gamma            0.1",
        "objective",
        "random labels give",
        str(tmp_path / "m"),
    ):
        assert word in out
    assert "kernel " not in out  # the method has told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "kernel", "candidates"),
    [
        ([], None, {"communities 15", "linkage 0.3", "margin"}),
        (["--kernel", "graph"], "graph", {"communities 15", "linkage 0.3"}),
        (["--kernel", "rbf"], "rbf", {"margin"}),
        (["--kernel", "linear"], "linear", {"margin"}),
    ],
)
def test_the_verdict_names_the_candidate_that_was_taken_and_its_trust(
    options, kernel, candidates, store, tmp_path, capsys
):
    words = ["fit", str(store), "--random-state", "0", "--model"]
    report = run(capsys, *words, tmp_path / "m", *options)
    model = mmcnb.load(tmp_path / "m")
    for name in ("candidate", "kernel", "objective"):
        assert report[name] == getattr(model, f"{name}_")
    assert {one["candidate"] for one in report["candidates"]} >= candidates
    assert report["candidates"] == model.report_["candidates"]
    assert kernel in (None, report["kernel"])
    assert main([*words, str(tmp_path / "again"), *options]) == 0
    out = capsys.readouterr().out.splitlines()
    assert f"candidate        {report['candidate']}" in out
    trust = model.report_["trust"]
    assert f"trust            {trust['level']}: {trust['reason']}" in out
    assert not any(line.startswith("gamma") for line in out)


def test_options_of_fit_reach_the_estimator(store, tmp_path):
    options = (
        "--set gamma=0.2 --set C=3 --set n_init=2 --set n_landmarks=17 --set sample_size=500 --kernel rbf "
        "--set basis=landmarks --set balance=0.1 --set min_share=0.2 --set random_state=5 "
        "--memory-limit 1GiB --jobs 1"
    )
    assert main(["fit", str(store), *HINGE, "--model", str(tmp_path / "m"), *options.split()]) == 0
    parameters = mmcnb.load(tmp_path / "m").get_params()
    expected = {"gamma": 0.2, "C": 3.0, "n_init": 2, "n_landmarks": 17, "sample_size": 500, "balance": 0.1}
    expected |= {"min_share": 0.2, "random_state": 5, "basis": "landmarks", "kernel": "rbf"}
    assert {name: parameters[name] for name in expected} == expected


def test_options_of_fit_reach_the_default_method(store, tmp_path):
    options = "--n-clusters 3 --kernel rbf --n-nodes 700 --scale standard --random-state 5"
    assert main(["fit", str(store), "--model", str(tmp_path / "m"), *options.split()]) == 0
    model = mmcnb.load(tmp_path / "m")
    assert isinstance(model, mmcnb.MaximumMarginClustering)
    expected = {"n_clusters": 3, "kernel": "rbf", "n_nodes": 700}
    expected |= {"scale": "standard", "random_state": 5}
    assert {name: model.get_params()[name] for name in expected} == expected


def test_options_of_a_number_that_is_found_reach_the_default_method(store, tmp_path):
    options = "--n-clusters 2,9 --min-cluster-size .05 --noise .02 --n-nodes 700"
    assert main(["fit", str(store), "--model", str(tmp_path / "m"), *options.split()]) == 0
    expected = {"n_clusters": [2, 9], "min_cluster_size": 0.05, "noise": 0.02, "n_nodes": 700}
    parameters = mmcnb.load(tmp_path / "m").get_params()
    assert {name: parameters[name] for name in expected} == expected


def test_the_metric_reaches_the_default_method(store, tmp_path):
    words = ["fit", str(store), "--metric", "cosine", "--model", str(tmp_path / "m")]
    assert main(words) == 0
    assert mmcnb.load(tmp_path / "m").metric == "cosine"


def test_info_and_verify_tell_the_shape(store, capsys):
    report = run(capsys, "info", store)
    assert (report["n_samples"], report["n_features"]) == (ROWS, FEATURES)
    assert run(capsys, "verify", store)["bytes"] == ROWS * (FEATURES * 4 + 8)  # the classes too
    assert main(["verify", str(store)]) == 0
    assert re.search(r"^bytes +29\.3 KiB$", capsys.readouterr().out, re.MULTILINE)
    assert main(["info", str(store)]) == 0
    told = capsys.readouterr().out
    assert "1,500" in told
    assert re.search(r"^bytes on disk +[\d.]+ KiB$", told, re.MULTILINE)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--memory-limit", "1GiB"],
        [*HINGE, "--set", "n_landmarks=10"],
        ["--jobs", "1"],
        ["--kernel", "rbf"],
    ],
)
def test_plan_of_a_store_is_the_plan_of_its_size(store, capsys, words):
    by_store = run(capsys, "plan", store, *words)
    by_hand = run(capsys, "plan", "--rows", ROWS, "--features", FEATURES, *words)
    assert by_store["n_samples"] == by_hand["n_samples"] == ROWS
    assert by_store["n_landmarks"] == by_hand["n_landmarks"]
    assert by_store["peak"] == by_hand["peak"]


def test_convert_makes_a_store_that_fits(tmp_path, capsys):
    X, y = make_block("blobs", 0, ROWS, FEATURES, 3)
    with (tmp_path / "rows.libsvm").open("w") as out:
        for row, label in zip(X, y, strict=True):
            out.write(f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist())) + "\n")
    report = run(capsys, "convert", tmp_path / "rows.libsvm", tmp_path / "rows.zarr", "--layout", "dense")
    assert (report["n_samples"], report["n_features"]) == (ROWS, FEATURES)
    np.testing.assert_array_equal(mmcnb.open_samples(tmp_path / "rows.zarr").block(0, ROWS), X)


def test_doctor_reports_this_installation(capsys):
    report = run(capsys, "doctor")
    assert report["versions"]["mmcnb"] == mmcnb.__version__
    assert report["versions"]["numpy"] == np.__version__
    assert report["thread_pools"]
    assert report["versions"].keys() >= {"dask", "distributed", "fsspec"}
    assert os.access(report["machine"]["compile_cache"], os.W_OK)
    assert report["machine"]["threads"] >= 1
    assert main(["doctor", "--warm"]) == 0
    assert "compile cache" in capsys.readouterr().out
    assert mmcnb.MaximumMarginClustering(2).plan(np.eye(9)).compile_seconds == 0


def test_doctor_gives_the_remedy_of_a_cache_that_cannot_be_written(capsys, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    cache = run(capsys, "doctor")["machine"]["compile_cache"]
    assert cache == "none: set NUMBA_CACHE_DIR to a folder that can be written"


def test_doctor_names_what_a_killed_command_left_and_removes_it(tmp_path, capsys):
    assert run(capsys, "doctor", tmp_path) == {"leftovers": []}
    code = "import os, sys; from mmcnb.stores.atomic import AtomicOutput; out = AtomicOutput(sys.argv[1])"
    code += "; out.__enter__(); os._exit(9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "rows.zarr")], check=False)
    (left,) = tmp_path.iterdir()
    assert main(["doctor", str(tmp_path)]) == 0
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:])
    assert (said["path"], said["of"], said["owner"]) == (str(left), "rows.zarr", "is gone")
    assert left.exists()
    (found,) = run(capsys, *said["remedy"].split()[1:])["leftovers"]
    assert (found["path"], found["of"], found["done"]) == (str(left), "rows.zarr", "removed")
    assert names(tmp_path) == []
    assert "is no folder" in refuse(capsys, "doctor", tmp_path / "none")


@pytest.mark.slow
def test_fit_and_predict_on_a_cluster_give_the_labels_of_threads(fitted, tmp_path, capsys, dask_client):
    address = dask_client(2).scheduler.address
    store, model = fitted / "blobs.zarr", tmp_path / "model"
    commands = {
        "fit": ["fit", store, "--model", model, "--random-state", 0, "--dask", "local:1"],
        "predict": ["predict", model, store, "--dask", address],
    }
    for verb, words in commands.items():
        run(capsys, *words, "--labels", tmp_path / f"{verb}.zarr")
        np.testing.assert_array_equal(
            zarr.open_array(tmp_path / f"{verb}.zarr", mode="r")[:],
            zarr.open_array(fitted / "labels.zarr", mode="r")[:],
        )


def test_a_scheduler_that_does_not_answer(fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("mmcnb.engine.dask.CONNECT_SECONDS", 1)
    outputs = ["--model", tmp_path / "model", "--labels", tmp_path / "labels.zarr"]
    sentence = refuse(capsys, "fit", fitted / "blobs.zarr", *outputs, "--dask", "tcp://127.0.0.1:9")
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in sentence
    assert names(tmp_path) == []


@pytest.mark.slow
def test_the_limit_of_the_demo_leaves_room_to_compile_on_any_number_of_cores(monkeypatch):
    monkeypatch.setattr("mmcnb._numba.is_compiled", lambda routine: False)
    rows = build_parser().parse_args(["demo"]).rows
    for n_jobs in (1, 2, 8, 64):
        model = mmcnb.MaximumMarginClustering(2, kernel="rbf", memory_limit=demo.LIMIT, n_jobs=n_jobs)
        plan = model.plan(RowShape(rows, 90))
        assert plan.compile_seconds > 10
        assert plan.peak <= parse_bytes(demo.LIMIT) < rows * 90 * 4 * 0.9


def test_demo_compares_both_and_leaves_only_the_pages(tmp_path, capfd):
    report = run(capfd, "demo", "--out", tmp_path / "demo", "--rows", 20000)
    assert names(tmp_path / "demo") == ["digits.html", "rings.html"]
    for part in ("digits", "rings"):
        assert report[part]["page"] == str(tmp_path / "demo" / f"{part}.html")
        assert (tmp_path / "demo" / f"{part}.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert report["rings"]["n_samples"] == 20000
    assert report["rings"]["mmcnb_error"] < 0.01 < 0.4 < report["rings"]["k_means_error"]
    assert report["digits"]["n_samples"] == 1797
    assert report["digits"]["mmcnb_error"] <= report["digits"]["k_means_error"]


# Bad input


@pytest.mark.parametrize("verb", ["info", "verify", "plan"])
def test_a_store_that_is_not_there(verb, tmp_path, capsys):
    assert "no.zarr" in refuse(capsys, verb, tmp_path / "no.zarr")


def test_fit_of_a_store_that_is_not_there_leaves_nothing(tmp_path, capsys):
    sentence = refuse(
        capsys, "fit", tmp_path / "no.zarr", "--model", tmp_path / "m", "--labels", tmp_path / "l"
    )
    assert "no.zarr" in sentence
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "method", "named"),
    [
        *((f"--set {words}", HINGE, words) for words in ("C=-1", "gamma=0", "gamma='wide'", "balance=-3")),
        *((f"--set {words}", HINGE, words) for words in ("n_init=0", "n_init='many'", "continuation='off'")),
        ("--set min_share=2", HINGE, "min_share=2"),
        ("--metric manhattan", (), "metric='manhattan'"),
        ("--n-nodes 1", (), "n_nodes=1"),
        *(("--kernel cubic", method, "kernel='cubic'") for method in (HINGE, ())),
        ("--kernel poly", (), "kernel='poly'"),
        ("--n-clusters some", (), "n_clusters='some'"),
        ("--memory-limit lots", (), "memory_limit='lots'"),
        ("--memory-limit 1MiB", (), "memory_limit"),
        ("--jobs 0", (), "n_jobs=0"),
    ],
)
def test_parameters_out_of_range_leave_nothing(words, method, named, store, tmp_path, capsys):
    outputs = ["--model", tmp_path / "m", "--labels", tmp_path / "l"]
    sentence = refuse(capsys, "fit", store, *method, *outputs, *words.split())
    assert named in sentence
    assert names(tmp_path) == ["blobs.zarr"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fit"], "the following arguments are required: STORE;"),
        (["fit", "s", "--model", "m", "--set", "C"], "argument --set: 'C' has no value; write name=value"),
        (["fit", "s", "--model", "m", "--jobs", "x"], "argument --jobs: invalid int value: 'x'"),
        (["fry"], "invalid choice: 'fry'"),
        ([], "required: VERB"),
    ],
)
def test_argument_errors_are_one_sentence(words, sentence, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert err.count("\n") == 1


def test_a_fit_writes_a_model_or_labels(store, capsys):
    assert "nothing would be written; give --labels OUT.csv, or --model FILE" in refuse(capsys, "fit", store)


def test_plan_wants_a_store_or_a_size(store, capsys):
    for words in ([], ["--rows", 5], [store, "--rows", 5, "--features", 2]):
        assert "either STORE or both" in refuse(capsys, "plan", *words)
    assert "at least 1" in refuse(capsys, "plan", "--rows", 0, "--features", 2)


def test_features_of_model_and_store_must_agree(fitted, tmp_path, capsys):
    write_synthetic("blobs", tmp_path / "wide.zarr", 100, FEATURES + 1)
    sentence = refuse(
        capsys, "predict", fitted / "blobs.model", tmp_path / "wide.zarr", "--labels", tmp_path / "l"
    )
    assert "4" in sentence
    assert "3" in sentence
    assert names(tmp_path) == ["wide.zarr"]


def test_a_model_that_is_none(store, tmp_path, capsys):
    (tmp_path / "m").write_text("not a model")
    refuse(capsys, "predict", tmp_path / "m", store, "--labels", tmp_path / "l")
    refuse(capsys, "predict", tmp_path / "no-model", store, "--labels", tmp_path / "l")
    assert names(tmp_path) == ["blobs.zarr", "m"]


def test_an_output_that_exists_is_kept_without_overwrite(fitted, tmp_path, capsys):
    (tmp_path / "m").write_text("mine")
    words = ["fit", fitted / "blobs.zarr", "--model", tmp_path / "m"]
    assert "--overwrite" in refuse(capsys, *words)
    assert (tmp_path / "m").read_text() == "mine"
    run(capsys, *words, "--overwrite")
    assert mmcnb.load(tmp_path / "m").predict(np.zeros((1, FEATURES))).shape == (1,)
    assert names(tmp_path) == ["m"]


def test_labels_that_exist_are_replaced_whole(fitted, tmp_path, capsys):
    words = ["predict", fitted / "blobs.model", fitted / "blobs.zarr", "--labels", tmp_path / "l.zarr"]
    run(capsys, *words)
    assert "--overwrite" in refuse(capsys, *words)
    run(capsys, *words, "--overwrite")
    assert zarr.open_array(tmp_path / "l.zarr", mode="r").shape == (ROWS,)
    assert names(tmp_path) == ["l.zarr"]


@pytest.mark.filterwarnings("default:.*no checksums")
def test_a_store_without_checksums_is_said_to_be_one(tmp_path, capsys):
    X, _ = make_block("blobs", 0, ROWS, FEATURES, 3)
    zarr.create_array(tmp_path / "foreign.zarr", data=X, chunks=(500, FEATURES))
    assert main(["fit", str(tmp_path / "foreign.zarr"), "--model", str(tmp_path / "m")]) == 0
    err = capsys.readouterr().err
    assert "no checksums" in err
    assert "mmcnb convert" in err


# How a run ends otherwise


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "stopped by the user"),
        (
            OSError(28, "No space left on device", "labels/c/0"),
            2,
            "the disk is full while writing labels/c/0",
        ),
        (PermissionError(13, "Permission denied", "there"), 2, "there: Permission denied"),
        (
            OSError(5, "Input/output error"),
            2,
            "a file could not be read or written: Input/output error; check ",
        ),
        (MemoryError(), 2, "memory ran out (MemoryError); give a smaller --memory-limit."),
        (InputError("row 3\n is bad"), 2, "row 3 is bad"),
    ],
    ids=["interrupt", "disk-full", "permission", "nameless", "memory", "input"],
)
def test_each_end_has_its_code_and_one_line(error, code, sentence, store, monkeypatch, capsys):
    def fail(*_):
        raise error

    monkeypatch.setattr("mmcnb.cli.info.run", fail)
    assert main(["info", str(store)]) == code
    err = capsys.readouterr().err
    assert err.startswith(f"mmcnb: {sentence}")
    assert err.count("\n") == 1


def caused(by):
    error = SystemError("returned a result with an exception set")
    error.__cause__ = by
    return error


@pytest.mark.parametrize("error", [caused(KeyboardInterrupt()), caused(caused(KeyboardInterrupt()))])
def test_an_interrupt_inside_a_kernel_is_an_interrupt(error, store, monkeypatch, capsys):
    monkeypatch.setattr("mmcnb.cli.info.run", lambda _: throw(error))
    assert main(["info", str(store)]) == 130
    assert "stopped by the user" in capsys.readouterr().err


def test_other_system_errors_are_none(store, monkeypatch):
    monkeypatch.setattr("mmcnb.cli.info.run", lambda _: throw(caused(RuntimeError())))
    with pytest.raises(SystemError):
        main(["info", str(store)])


def throw(error):
    raise error


def test_a_failure_while_labels_are_written_leaves_nothing(store, tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mmcnb.stores._labels.write_chunk", full)
    words = ["fit", store, "--model", tmp_path / "m", "--labels", tmp_path / "l.zarr"]
    assert "the disk is full" in refuse(capsys, *words)
    assert names(tmp_path) == ["blobs.zarr"]


def test_a_disk_that_is_full_leaves_nothing(tmp_path):
    resource = pytest.importorskip("resource", reason="limits on the size of files are POSIX's")
    np.save(tmp_path / "rows.npy", make_block("blobs", 0, 20000, 4)[0])
    done = subprocess.run(
        [sys.executable, "-m", "mmcnb", "convert", tmp_path / "rows.npy", tmp_path / "rows.zarr"],
        capture_output=True,
        text=True,
        check=False,
        # Coverage, where it runs, would meet the limit too when it writes what it found.
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "the disk is full" in done.stderr
    assert names(tmp_path) == ["rows.npy"]


def test_python_m_mmcnb_is_mmcnb(store):
    done = subprocess.run(
        [sys.executable, "-m", "mmcnb", "info", str(store / "gone")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("mmcnb: ")


# Outputs


def test_outputs_may_not_touch_what_is_read_or_each_other(store, tmp_path):
    for outputs in ([store], [store / "labels"], [tmp_path], [tmp_path / "a", tmp_path / "a" / "b"]):
        with pytest.raises(InputError, match="overlaps"):
            check_paths(list(map(str, outputs)), [str(store)])


def test_a_folder_that_is_no_store_is_never_replaced(fitted, tmp_path, capsys):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("cat")
    words = ["predict", fitted / "blobs.model", fitted / "blobs.zarr", "--labels", tmp_path / "photos"]
    assert "photos" in refuse(capsys, *words, "--overwrite")
    assert names(tmp_path / "photos") == ["cat.png"]


def test_a_missing_or_closed_folder_is_refused_at_once(fitted, tmp_path, monkeypatch, capsys):
    words = ["predict", fitted / "blobs.model", fitted / "blobs.zarr", "--labels"]
    assert "does not exist" in refuse(capsys, *words, tmp_path / "no" / "labels")
    denied = PermissionError(13, "Permission denied")
    monkeypatch.setattr(os, "mkdir", lambda *_: throw(denied))
    monkeypatch.setattr(mmcnb, "load", lambda _: pytest.fail("the work has begun"))
    assert "could not be written (Permission denied)" in refuse(capsys, *words, tmp_path / "labels")


def test_outputs_appear_all_or_none(tmp_path):
    targets = [str(tmp_path / "a"), str(tmp_path / "b")]
    (tmp_path / "a").write_text("old")

    def interrupted():
        with whole_outputs(targets, [], overwrite=True) as asides:
            Path(asides[0]).write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]
    with whole_outputs(targets, [], overwrite=True) as asides:
        for aside in asides:
            Path(aside).write_text("new")
        assert (tmp_path / "a").read_text() == "old"
    assert [Path(target).read_text() for target in targets] == ["new", "new"]
    assert names(tmp_path) == ["a", "b"]
