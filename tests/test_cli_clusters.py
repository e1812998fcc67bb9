"""The command line with more methods and more clusters than two."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.cli import main
from mmcnb.cli._methods import DEFAULT, METHODS, OPTIONS, estimator_class, parameters_of, value_of
from mmcnb.datasets import make_block, write_synthetic
from mmcnb.engine.plan import RowShape
from mmcnb.stores import create_dense_store

ROWS, FEATURES, SEED, CLUSTERS = 600, 3, 35, 3
SEVERAL = "--method multiple-kernel-clustering"
FEW = {"n_init": 2, "sample_size": 300}
SMALL = {
    "maximum-margin-clustering": {"n_clusters": 3},
    "sparse-kernel-mmc": FEW,
    "crammer-singer-mmc": {"n_clusters": 3, **FEW},
    "unsupervised-rls": {"n_clusters": 3, **FEW},
    "evolutionary-mmc": {"n_init": 2, "sample_size": 100},
    "multiple-kernel-clustering": {"n_clusters": 3, **FEW},
    "kernel-kmeans": {"n_clusters": 3, **FEW},
    "cpmmc": {**FEW, "eta": 0.02},
    "kernel-cpmmc": {"n_init": 2, "max_rounds": 20},
}


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "blobs.zarr"
    write_synthetic("blobs", path, ROWS, FEATURES, SEED, n_clusters=CLUSTERS)
    return path


def settings(parameters):
    """Each parameter as ``--set name=value``."""
    return [word for name, value in parameters.items() for word in ("--set", f"{name}={value}")]


def stored(path, X):
    with create_dense_store(path, X.shape[1], dtype="float32") as writer:
        writer.append(np.ascontiguousarray(X, np.float32))
    return path


def run(capsys, *words):
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refuse(capsys, *words):
    """Run a command that must be refused; give its sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main([*map(str, words)]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.count("\n") == 1, streams.err
    return streams.err


def lines_of(capsys, name):
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{name} ")]


@pytest.mark.parametrize(
    "asked", [[], ["--n-clusters", "auto"], ["--n-clusters", "2,5"], ["--n-clusters", None]]
)
def test_the_number_of_clusters_is_found_and_told(asked, blobs, tmp_path, capsys):
    words = ["fit", blobs, "--random-state", 0, *asked, "--model"]
    report = run(capsys, *words, tmp_path / "a")
    assert report["n_clusters"] == report["number"]["n_clusters"] == CLUSTERS
    assert len(report["sizes"]) == CLUSTERS
    assert main([*map(str, words), str(tmp_path / "b")]) == 0
    assert lines_of(capsys, "number") == [f"number           {report['number']['reason']}"]


def test_a_number_that_is_given_is_not_told(blobs, tmp_path, capsys):
    words = ["fit", blobs, "--random-state", 0, "--n-clusters", CLUSTERS, "--model"]
    assert run(capsys, *words, tmp_path / "a")["number"] is None
    assert main([*map(str, words), str(tmp_path / "b")]) == 0
    assert lines_of(capsys, "number") == []


def test_layers_are_told(blobs, tmp_path, capsys):
    words = ["fit", blobs, "--random-state", 0, "--model"]
    layers = run(capsys, *words, tmp_path / "a")["layers"]
    assert main([*map(str, words), str(tmp_path / "b")]) == 0
    told = lines_of(capsys, "layer")
    assert len(told) == len(layers)
    for line, one in zip(told, layers, strict=True):
        assert line.startswith(
            f"layer            {one['n_clusters']} clusters, found at {one['persistence']} res"
        )
        assert f"the smallest of about {one['smallest']} rows" in line
        assert line.endswith(", taken") == one["taken"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_layers_are_columns_of_the_labels(ending, blobs, tmp_path, capsys):
    labels = tmp_path / f"labels.{ending}"
    words = ["fit", blobs, "--random-state", 0, "--n-clusters", 2, "--labels", labels, "--layers"]
    report = run(capsys, *words, "--model", tmp_path / "m")
    frame = pd.read_csv(labels) if ending == "csv" else pd.read_parquet(labels)
    others = [one["n_clusters"] for one in report["layers"] if not one["taken"]]
    assert len(others) > 0
    assert frame.columns[1:].tolist() == ["cluster", "margin", *(f"layer_{k}" for k in others)]
    model = mmcnb.load(tmp_path / "m")
    np.testing.assert_array_equal(frame["cluster"], model.predict(blobs))
    for k in others:
        i = model.layers_["n_clusters"].tolist().index(k)
        np.testing.assert_array_equal(frame[f"layer_{k}"], model.predict(blobs, layer=i))
    run(capsys, *words[:-1], "--overwrite")
    plain = pd.read_csv(labels) if ending == "csv" else pd.read_parquet(labels)
    assert plain.equals(frame[plain.columns])
    assert plain.columns[1:].tolist() == ["cluster", "margin"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--layers --labels {0}/l.zarr",
            "--layers writes columns of a table; give --labels OUT.csv or OUT.parquet",
        ),
        (
            "--layers --model {0}/m",
            "--layers writes columns of a table; give --labels OUT.csv or OUT.parquet",
        ),
        (
            "--layers --labels {0}/l.csv --method unsupervised-rls",
            "--layers is of maximum-margin-clustering, not of unsupervised-rls; leave it out",
        ),
    ],
)
def test_layers_without_a_place_or_a_tree_are_refused(words, sentence, blobs, tmp_path, capsys):
    said = refuse(capsys, "fit", blobs, *words.format(tmp_path).split())
    assert said == f"mmcnb: {sentence}.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["zarr", "csv"])
@pytest.mark.parametrize("noise", ["auto", ".1"])
def test_noise_is_labelled_and_told(noise, ending, blobs, tmp_path, capsys):
    words = ["fit", blobs, "--random-state", 0, "--noise", noise, "--labels", tmp_path / f"l.{ending}"]
    report = run(capsys, *words, "--model", tmp_path / "m")
    labels = (
        pd.read_csv(tmp_path / "l.csv")["cluster"].to_numpy()
        if ending == "csv"
        else zarr.open_array(tmp_path / "l.zarr", mode="r")[:]
    )
    assert report["noise"] == (labels == -1).sum() > 0
    assert report["sizes"] == np.bincount(labels[labels >= 0]).tolist()
    assert main([*map(str, words), "--overwrite"]) == 0
    assert lines_of(capsys, "noise") == [f"noise            {report['noise']} rows, labelled -1"]
    again = tmp_path / f"again.{ending}"
    run(capsys, "predict", tmp_path / "m", blobs, "--labels", again)
    found = pd.read_csv(again)["cluster"] if ending == "csv" else zarr.open_array(again, mode="r")[:]
    np.testing.assert_array_equal(found, labels)


def test_without_noise_there_is_no_line_of_it(blobs, tmp_path, capsys):
    assert main(["fit", str(blobs), "--model", str(tmp_path / "m"), "--random-state", "0"]) == 0
    assert lines_of(capsys, "noise") == []


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_each_method_fits_and_predicts_as_its_estimator(method, blobs, tmp_path, capsys):
    X = make_block("blobs", 0, ROWS, FEATURES, SEED, n_clusters=CLUSTERS)[0]
    options = [*settings(SMALL[method]), "--random-state", 3]
    model, labels, again = (tmp_path / name for name in ("model", "labels.zarr", "again.zarr"))
    report = run(capsys, "fit", blobs, "--method", method, *options, "--model", model, "--labels", labels)
    run(capsys, "predict", model, blobs, "--labels", again)
    estimator = estimator_class(method)(**SMALL[method], random_state=3)
    expected = estimator.fit(X).labels_
    for path in (labels, again):
        np.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], expected)
    assert report["method"] == method
    assert report["objective"] == estimator.objective_
    sizes = report["sizes"] or report["sample_sizes"]
    assert len(sizes) == getattr(estimator, "n_clusters", 2)
    if report["sizes"]:
        assert sizes == np.bincount(expected).tolist()
    assert type(mmcnb.load(model)) is type(estimator)


def test_each_parameter_of_the_default_method_is_an_option():
    assert parameters_of(DEFAULT) == set(OPTIONS)


@pytest.mark.parametrize("verb", ["fit", "plan", "info"])
def test_an_option_that_is_none_is_refused_with_those_that_are(verb, blobs, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([verb, str(blobs), "--loss", "hinge"])
    said = capsys.readouterr().err
    listed = said.partition("arguments: --loss hinge; its options are ")[2].partition(";")[0].split(", ")
    with pytest.raises(SystemExit, match="0"):
        main([verb, "--help"])
    assert set(listed) == set(re.findall(r"^  (?:-h, )?(--[\w-]+)", capsys.readouterr().out, re.MULTILINE))
    assert said.startswith(f"mmcnb {verb}: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("verb", ["fit", "plan"])
def test_the_help_of_a_method_lists_its_parameters(verb, method, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([verb, "--method", method, "--help"])
    assert stopped.value.code == 0
    listed = capsys.readouterr().out.partition(f"parameters of {method}")[2]
    names = {
        name for line in re.findall(r"^(\w[\w, ]*) :", listed, re.MULTILINE) for name in line.split(", ")
    }
    assert names == parameters_of(method) - {"random_state"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("3", 3), ("1e-3", 1e-3), (".5,.3,.2", [0.5, 0.3, 0.2]), ("auto", "auto"), ("None", None)),
        *(("False", False), ("linear,rbf", ["linear", "rbf"]), ("k-means", "k-means"), ("", "")),
        ('["linear", ("poly", {"degree": 2})]', ["linear", ("poly", {"degree": 2})]),
    ],
)
def test_values_are_written_as_in_python_and_names_bare(text, value):
    assert value_of(text) == value


def test_a_method_that_is_none_is_answered_with_those_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "rows.zarr", "--model", "m", "--method", "support-cluster-machine"])
    told = capsys.readouterr().err
    assert "'support-cluster-machine'" in told
    assert all(method in told for method in METHODS)
    assert told.count("\n") == 1


def test_what_is_on_or_off_is_true_or_false(blobs, tmp_path):
    given = settings({"continuation": False, "n_init": 1, "sample_size": 50})
    assert main(["fit", str(blobs), "--model", str(tmp_path / "m"), "--method", "cpmmc", *given]) == 0
    assert mmcnb.load(tmp_path / "m").continuation is False


def test_two_clusters_may_be_asked_of_the_method_that_finds_two(blobs, tmp_path, capsys):
    small = ["--method", "sparse-kernel-mmc", *settings({"n_init": 1, "sample_size": 100})]
    words = ["fit", blobs, *small, "--random-state", 3, "--model"]
    outputs = ("one", []), ("other", ["--n-clusters", 2])
    one, other = (run(capsys, *words, tmp_path / name, *more) for name, more in outputs)
    assert one["sizes"] == other["sizes"]
    assert one["objective"] == other["objective"]


def test_three_blobs_are_found_and_their_sizes_worded(blobs, tmp_path, capsys):
    words = ["fit", blobs, "--method", "unsupervised-rls", "--n-clusters", CLUSTERS, "--random-state", 0]
    assert main([*map(str, words), "--model", str(tmp_path / "m"), "--labels", str(tmp_path / "l.zarr")]) == 0
    (sizes,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("cluster sizes"))
    _, y = make_block("blobs", 0, ROWS, FEATURES, SEED, n_clusters=CLUSTERS)
    labels = zarr.open_array(tmp_path / "l.zarr", mode="r")[:]
    assert adjusted_rand_score(y, labels) > 0.9
    assert all(f"{size} ({size / ROWS:.1%})" in sizes for size in np.bincount(labels))


def test_options_reach_the_estimator(blobs, tmp_path):
    options = "--n-clusters 3 --set cluster_sizes=.5,.3,.2 --set size_tolerance=.2 --set search=steepest"
    words = f"fit {blobs} --model {tmp_path / 'm'} --method unsupervised-rls {options}"
    words += " --set alpha=.01 --set max_passes=2 --set n_init=1"
    assert main(words.split()) == 0
    model = mmcnb.load(tmp_path / "m")
    expected = {"n_clusters": 3, "alpha": 0.01, "size_tolerance": 0.2, "max_passes": 2, "search": "steepest"}
    assert {name: model.get_params()[name] for name in expected} == expected
    low, high = np.array([0.5, 0.3, 0.2]) * 0.75 * ROWS, np.array([0.5, 0.3, 0.2]) * 1.25 * ROWS
    sizes = np.sort(model.cluster_sizes_)[::-1]
    assert ((low <= sizes) & (sizes <= high)).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--method unsupervised-rls --n-clusters auto", "n_clusters='auto' is out of range; give a whole"),
        ("--n-clusters 0", "n_clusters=0 is out of range"),
        ("--n-clusters 5,3", "is upside down; give (3, 5)"),
        ("--n-clusters 2 --min-cluster-size 5", "min_cluster_size=5 needs a number to find"),
        ("--noise 2", "noise=2 is out of range"),
        ("--n-clusters 601", "n_clusters=601 is more than the 600 rows"),
        ("--method unsupervised-rls --n-clusters 601", "n_clusters=601 is more than the 600 rows"),
        ("--method crammer-singer-mmc --n-clusters 601", "n_clusters=601 is more than the 600 rows"),
        (
            "--method sparse-kernel-mmc --n-clusters 3",
            "sparse-kernel-mmc has no parameter n_clusters; leave it out, or choose --method maximum-margin",
        ),
        ("--kernel rbf --n-clusters 601", "n_clusters=601 is more than the 600 rows"),
        (
            "--set cluster_sizes=equal",
            "has no parameter cluster_sizes; leave it out, or choose --method crammer-singer-mmc or unsup",
        ),
        ("--kernel poly", "kernel='poly' is unknown"),
        (
            "--set gamma=1",
            "clustering has no parameter gamma; leave it out, or choose --method sparse-kernel-mmc",
        ),
        ("--method unsupervised-rls --metric cosine", "leave it out, or choose --method maximum-margin-clu"),
        (
            "--method kernel-kmeans --set loss=squared",
            "has no parameter loss; leave it out, or choose one of coef0, degree, gamma,",
        ),
        ("--method unsupervised-rls --n-clusters 3 --set cluster_sizes=.5,.3,.3", "sum to 1, not to 1.1"),
        ("--method unsupervised-rls --n-clusters 3 --set cluster_sizes=.5,.5", "each of the 3 clusters"),
        ("--method unsupervised-rls --set cluster_sizes=most", "cluster_sizes='most' is unknown"),
        (
            "--method unsupervised-rls --n-clusters 5 --set sample_size=4",
            "sample_size=4 is smaller than n_clusters=5",
        ),
        ("--method unsupervised-rls --set alpha=0", "alpha=0 is out of range; give a number above 0"),
        ("--method evolutionary-mmc --set alpha=-1", "alpha=-1 is out of range"),
        ("--method unsupervised-rls --set alpha=some", "alpha='some'"),
        ("--method evolutionary-mmc --n-clusters 3", "evolutionary-mmc has no parameter n_clusters; leave"),
        (
            "--method unsupervised-rls --set C=3",
            "has no parameter C; leave it out, or choose --method sparse",
        ),
        (
            "--set alpha=1",
            "no parameter alpha; leave it out, or choose --method unsupervised-rls or evolutiona",
        ),
        (
            "--set kernels=linear",
            "no parameter kernels; leave it out, or choose --method multiple-kernel-clust",
        ),
        ("--set colour=red", f"leave it out, or choose one of {', '.join(sorted(OPTIONS))}."),
        ("--set memory_limit=1GiB", "has no parameter memory_limit"),
        (f"{SEVERAL} --set gamma=1", "multiple-kernel-clustering has no parameter gamma; leave it out"),
        (f"{SEVERAL} --set basis=paper", "basis='paper' is unknown; choose one of 'landmarks', 'exact'"),
        (f"{SEVERAL} --set kernels=linear,cubic", "kernels[1]='cubic' is unknown; give one of 'rbf'"),
        (
            f"{SEVERAL} --set kernels=[('rbf',{{'gamma':-1}})]",
            "kernels[0]: gamma=-1 is out of range; give",
        ),
        (f"{SEVERAL} --set kernels=cubic", "kernels='cubic' is unknown; give \"auto\" or a list"),
        (
            "--method sparse-kernel-mmc --set basis=exact",
            "basis='exact' is unknown; choose one of 'landmarks', 'paper'",
        ),
        (f"{SEVERAL} --set basis=exact --set n_landmarks=5", "leave n_landmarks at None"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(options, sentence, blobs, tmp_path, capsys):
    said = refuse(capsys, "fit", blobs, "--model", tmp_path / "m", *options.split())
    assert sentence in said
    assert list(tmp_path.iterdir()) == []


def test_kernels_reach_the_estimator_and_their_weights_the_verdict(blobs, tmp_path, capsys):
    words = ["fit", blobs, *SEVERAL.split(), "--set", "sample_size=100", "--random-state", 0, "--model"]
    kernels = [
        "linear",
        ("poly", {"degree": 2}),
        ("rbf", {"gamma": 0.5}),
        ("rbf", {"gamma": "median"}),
        "rbf",
    ]
    report = run(capsys, *words, tmp_path / "m", "--set", f"kernels={kernels}", "--set", "threshold=fixed")
    model = mmcnb.load(tmp_path / "m")
    expected = mmcnb.MultipleKernelClustering(
        kernels=kernels, threshold="fixed", sample_size=100, random_state=0
    ).fit(mmcnb.open_samples(blobs))
    np.testing.assert_array_equal(report["kernel_weights"], expected.kernel_weights_)
    assert report["kernel_names"] == model.kernel_names_ == expected.kernel_names_
    assert model.get_params()["threshold"] == "fixed"
    assert main([*map(str, words), str(tmp_path / "a"), "--set", "kernels=auto"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("kernel weight")]
    automatic = mmcnb.load(tmp_path / "a")
    pairs = zip(automatic.kernel_weights_, automatic.kernel_names_, strict=True)
    assert shown == [f"kernel weight    {weight:.3f}  {name}" for weight, name in pairs]


def test_the_plan_counts_the_basis_of_each_kernel(capsys):
    words = ["plan", "--rows", 1000, "--features", 5, *SEVERAL.split(), "--set"]
    assert run(capsys, *words, "kernels=linear,rbf", "--set", "n_landmarks=20")["n_landmarks"] == 2 * 20
    three = "kernels=['linear', 'rbf', ('rbf', {'gamma': 2})]"
    assert run(capsys, *words, three, "--set", "basis=exact")["n_landmarks"] == 3 * 1000


@pytest.mark.parametrize("method", METHODS)
def test_rows_that_are_all_equal(method, tmp_path, capsys):
    store = stored(tmp_path / "equal.zarr", np.ones((50, 3)))
    number = ["--n-clusters", 2] if method == DEFAULT else []
    said = refuse(capsys, "fit", store, "--method", method, *number, "--model", tmp_path / "m")
    assert "all rows are equal" in said


@pytest.mark.parametrize("kernel", ["auto", "graph", "rbf"])
def test_rows_that_are_all_equal_under_a_kernel_that_is_given(kernel, tmp_path, capsys):
    store = stored(tmp_path / "equal.zarr", np.ones((50, 3)))
    words = ["fit", store, "--kernel", kernel, "--labels", tmp_path / "l.csv"]
    said = refuse(capsys, *words, "--n-clusters", 2)
    assert "all rows are equal" in said
    report = run(capsys, *words)
    assert (report["n_clusters"], report["sizes"], report["layers"]) == (1, [50], [])
    assert report["number"]["reason"] == "one cluster: all rows are equal, or differ by less than rounding."
    assert pd.read_csv(tmp_path / "l.csv")["cluster"].tolist() == [0] * 50
    assert "has no merge tree" in refuse(capsys, *words, "--layers", "--overwrite")


@pytest.mark.parametrize(
    "method",
    ["maximum-margin-clustering", "crammer-singer-mmc", "unsupervised-rls", "multiple-kernel-clustering"],
)
def test_fewer_rows_that_differ_than_clusters(method, tmp_path, capsys):
    store = stored(tmp_path / "few.zarr", np.repeat(np.eye(3), 20, axis=0))
    said = refuse(capsys, "fit", store, "--method", method, "--n-clusters", 4, "--model", tmp_path / "m")
    assert "3 rows that differ, fewer than n_clusters=4" in said


@pytest.mark.parametrize("verb", ["fit", "plan"])
@pytest.mark.parametrize("method", ["unsupervised-rls", "evolutionary-mmc"])
def test_a_kernel_matrix_that_does_not_fit_names_a_limit_and_a_parameter(verb, method, tmp_path, capsys):
    store = tmp_path / "rows.zarr"
    write_synthetic("blobs", store, 4200, 2)
    outputs = ["--model", tmp_path / "m"] if verb == "fit" else []
    words = [verb, store, "--method", method, *outputs, "--memory-limit", "400MiB", "--set"]
    said = refuse(capsys, *words, "sample_size=4200")
    assert "a smaller sample_size needs less" in said
    if verb == "plan":
        words[words.index("400MiB")] = re.search(r"the least that works is (\d+) MiB", said)[1] + "MiB"
        run(capsys, *words, "sample_size=4200")


@pytest.mark.parametrize("sizes", ["equal", ".5,.3,.2"])
@pytest.mark.parametrize("method", ["unsupervised-rls", "crammer-singer-mmc"])
def test_sizes_are_written_alike_for_every_method_that_keeps_them(method, sizes, capsys):
    words = ["plan", "--rows", 600, "--features", 3, "--method", method, "--n-clusters", 3]
    assert run(capsys, *words, "--set", f"cluster_sizes={sizes}")["method"] == method


@pytest.mark.parametrize(
    "options",
    [
        *({}, {"n_clusters": 5}, {"kernel": "graph", "n_clusters": 5}, {"kernel": "rbf"}),
        *(
            {"kernel": "linear"},
            {"metric": "cosine"},
            {"n_nodes": 200, "n_clusters": "auto"},
        ),
    ],
)
def test_the_plan_of_the_default_method_is_that_of_the_fit(options, blobs, capsys):
    limit = ["--memory-limit", "1GiB"]  # what is free changes
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    planned = run(capsys, "plan", blobs, *limit, *words)
    assert planned == run(capsys, "plan", "--rows", ROWS, "--features", FEATURES, *limit, *words)
    expected = mmcnb.MaximumMarginClustering(memory_limit="1GiB", **options).plan(mmcnb.open_samples(blobs))
    assert {name: planned[name] for name in expected.to_dict()} == expected.to_dict()
    assert planned["method"] == "maximum-margin-clustering"


def test_the_plan_of_the_default_method_holds_the_graph_and_what_may_follow_it(capsys):
    words = ["plan", "--rows", 10**6, "--features", 20, "--memory-limit", "8GiB"]
    ways = [], ["--kernel", "graph"], ["--kernel", "rbf"], ["--n-clusters", 5]
    either, graph, function, five = (run(capsys, *words, *way) for way in ways)
    assert either["peak"] >= max(graph["peak"], function["peak"])
    assert graph["reads"] == 4 + (graph["store"] == "recompute")  # the sample, far rows twice, and the labels
    assert five["reads"] == 2 + (five["store"] == "recompute")


@pytest.mark.parametrize(
    "method", [method for method in METHODS if {"sample_size", "n_landmarks"} <= parameters_of(method)]
)
def test_the_plan_is_that_of_the_fit(method, blobs, capsys):
    """The same basis and sample as the estimator plans with; more of either needs more memory."""
    options = ["--memory-limit", "1GiB", "--method", method, "--set"]  # what is free changes
    by_store = run(capsys, "plan", blobs, *options, "sample_size=200")
    by_hand = ["plan", "--rows", ROWS, "--features", FEATURES, *options, "sample_size=200"]
    report = run(capsys, *by_hand)
    assert by_store == report
    estimator, shape = estimator_class(method)(sample_size=200, memory_limit="1GiB"), RowShape(ROWS, FEATURES)
    assert report["n_landmarks"] == estimator.plan(shape).to_dict()["n_landmarks"]
    larger = run(capsys, *by_hand[:-1], "sample_size=500")
    assert larger["sample"] > report["sample"]
    estimator.set_params(n_landmarks=20)
    fewer = run(capsys, *by_hand, "--set", "n_landmarks=20")
    assert fewer["n_landmarks"] == estimator.plan(shape).to_dict()["n_landmarks"]


def test_the_plan_knows_the_sample_that_many_clusters_take(capsys):
    words = ["plan", "--rows", 10**6, "--features", 20, "--method", "unsupervised-rls", "--n-clusters"]
    few, many = (run(capsys, *words, k) for k in (10, 40))
    assert many["work"] > 3 * few["work"]  # 4,000 rows for 2,000
