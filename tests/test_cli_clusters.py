"""The command line with more methods and more clusters than two."""

import json
import re
import warnings

import numpy as np
import pytest
import zarr
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.cli import main
from mmcnb.cli._methods import ELSEWHERE, METHODS, PARAMETERS, estimator_class, option_names
from mmcnb.stores import create_dense_store
from mmcnb.synthetic import make_block, write_synthetic

ROWS, FEATURES, SEED, CLUSTERS = 600, 3, 35, 3
SEVERAL = "--method multiple-kernel-clustering"
SMALL = {
    "maximum-margin-clustering": ["--n-clusters", 3],
    "sparse-kernel-mmc": ["--n-init", 2, "--sample-size", 300],
    "crammer-singer-mmc": ["--n-clusters", 3, "--n-init", 2, "--sample-size", 300],
    "unsupervised-rls": ["--n-clusters", 3, "--n-init", 2, "--sample-size", 300],
    "evolutionary-mmc": ["--n-init", 2, "--sample-size", 100],
    "multiple-kernel-clustering": ["--n-clusters", 3, "--n-init", 2, "--sample-size", 300],
    "kernel-kmeans": ["--n-clusters", 3, "--n-init", 2, "--sample-size", 300],
    "cpmmc": ["--n-init", 2, "--sample-size", 300, "--eta", 0.02],
    "kernel-cpmmc": ["--n-init", 2, "--max-rounds", 20],
    "iterative-svr": ["--sample-size", 300, "--loss", "hinge", "--epsilon", 0.1],
    "label-generation-mmc": ["--tol", 0.05, "--max-iter", 5],
    "sdp-mmc": ["--kernel", "linear", "--C", 0.1],
    "own-basis-mmc": ["--n-init", 1, "--sample-size", 100],
}
ALL_ROWS = {"label-generation-mmc": 60, "sdp-mmc": 40}  # methods that are slow in the number of rows


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "blobs.zarr"
    write_synthetic("blobs", path, ROWS, FEATURES, SEED, n_clusters=CLUSTERS)
    return path


def parameters_of(method):
    return set(estimator_class(method)._get_param_names())


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


def test_what_is_no_number_of_clusters_is_refused(blobs, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["fit", str(blobs), "--model", str(tmp_path / "a"), "--n-clusters", "some"])
    assert "--n-clusters: 'some' is no number of clusters; give one, or \"auto\"" in capsys.readouterr().err


def test_the_number_of_clusters_is_chosen_and_told(blobs, tmp_path, capsys):
    words = ["fit", blobs, "--random-state", 0, "--n-clusters", "auto", "--max-clusters", 5, "--model"]
    report = run(capsys, *words, tmp_path / "a")
    assert report["n_clusters"] == CLUSTERS
    assert len(report["sizes"]) == CLUSTERS
    assert main([*map(str, words), str(tmp_path / "b")]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("number ")]
    assert len(told) == 1
    assert told[0].startswith("number           3 of 2 to 5: searches agree by ")


@pytest.mark.parametrize("method", METHODS)
def test_each_method_fits_and_predicts_as_its_estimator(method, blobs, tmp_path, capsys):
    rows = ALL_ROWS.get(method, ROWS)
    X = make_block("blobs", 0, ROWS, FEATURES, SEED, n_clusters=CLUSTERS)[0][:rows]
    if rows < ROWS:
        blobs = stored(tmp_path / "few.zarr", X)
    options = [*SMALL[method], "--random-state", 3]
    model, labels, again = (tmp_path / name for name in ("model", "labels.zarr", "again.zarr"))
    report = run(capsys, "fit", blobs, "--method", method, *options, "--model", model, "--labels", labels)
    run(capsys, "predict", model, blobs, "--labels", again)
    names = [str(word).lstrip("-").replace("-", "_") for word in options[::2]]
    estimator = estimator_class(method)(**dict(zip(names, options[1::2], strict=True)))
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


@pytest.mark.parametrize("method", METHODS)
def test_each_parameter_of_a_method_is_an_option(method):
    """But for landmarks and the columns of views, which no word on a command line can say."""
    assert parameters_of(method) - {*PARAMETERS, *ELSEWHERE, "checkpoint", "verbose"} <= {
        "columns",
        "landmarks",
    }


def test_the_method_that_is_no_clusterer_says_what_it_is_for(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "rows.zarr", "--model", "m", "--method", "support-cluster-machine"])
    told = capsys.readouterr().err
    assert "is a classifier, which needs the class of each row; use mmcnb.SupportClusterMachine" in told
    assert told.count("\n") == 1


def test_what_is_on_or_off_has_two_options(blobs, tmp_path):
    words = (
        f"fit {blobs} --model {tmp_path / 'm'} --method cpmmc --no-continuation --n-init 1 --sample-size 50"
    )
    assert main(words.split()) == 0
    assert mmcnb.load(tmp_path / "m").continuation is False


def test_two_clusters_may_be_asked_of_the_method_that_finds_two(blobs, tmp_path, capsys):
    small = ["--method", "sparse-kernel-mmc", "--n-init", 1, "--sample-size", 100]
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
    options = (
        "--n-clusters 3 --alpha .01 --cluster-sizes .5,.3,.2 --size-tolerance .2 --max-passes 2 --n-init 1"
    )
    words = f"fit {blobs} --model {tmp_path / 'm'} --method unsupervised-rls {options} --search steepest"
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
        ("--method unsupervised-rls --n-clusters 1", "--n-clusters 1 is out of range; give at least 2"),
        ("--method unsupervised-rls --n-clusters auto", "--n-clusters 'auto' is out of range; give a whole"),
        ("--n-clusters 0", "--n-clusters 0 is out of range"),
        ("--n-clusters 601", "--n-clusters 601 is more than the 600 rows"),
        ("--method unsupervised-rls --n-clusters 601", "--n-clusters 601 is more than the 600 rows"),
        ("--method crammer-singer-mmc --n-clusters 601", "--n-clusters 601 is more than the 600 rows"),
        (
            "--method sparse-kernel-mmc --n-clusters 3",
            "sparse-kernel-mmc has no --n-clusters; leave it out, or choose --method maximum-margin",
        ),
        ("--loss hinge --n-clusters 601", "--n-clusters 601 is more than the 600 rows"),
        ("--cluster-sizes auto", "--cluster-sizes 'auto' is unknown; give None, 'equal' or shares"),
        ("--kernel poly", "--kernel 'poly' is unknown"),
        (
            "--gamma 1",
            "maximum-margin-clustering has no --gamma; leave it out, or choose --method sparse-kernel-mmc",
        ),
        ("--method unsupervised-rls --loss squared", "leave it out, or choose --method maximum-margin-clus"),
        ("--method unsupervised-rls --n-clusters 3 --cluster-sizes .5,.3,.3", "sum to 1, not to 1.1"),
        ("--method unsupervised-rls --n-clusters 3 --cluster-sizes .5,.5", "each of the 3 clusters"),
        ("--method unsupervised-rls --cluster-sizes most", "--cluster-sizes 'most' is unknown"),
        (
            "--method unsupervised-rls --n-clusters 5 --sample-size 4",
            "--sample-size 4 is smaller than --n-clusters 5",
        ),
        ("--method unsupervised-rls --alpha 0", "--alpha 0.0 is out of range; give a number above 0"),
        ("--method evolutionary-mmc --alpha -1", "--alpha -1.0 is out of range"),
        ("--method unsupervised-rls --alpha some", "--alpha 'some'"),
        ("--method evolutionary-mmc --n-clusters 3", "evolutionary-mmc has no --n-clusters; leave it out"),
        ("--method unsupervised-rls --C 3", "has no --C; leave it out, or choose --method sparse-kernel-mmc"),
        ("--alpha 1", "--alpha; leave it out, or choose --method unsupervised-rls or evolutionary-mmc"),
        ("--kernels linear", "--kernels; leave it out, or choose --method multiple-kernel-clustering"),
        (f"{SEVERAL} --gamma 1", "multiple-kernel-clustering has no --gamma; leave it out"),
        (f"{SEVERAL} --basis shared", "--basis 'shared' is unknown; choose one of 'landmarks', 'exact'"),
        (
            "--method sparse-kernel-mmc --basis exact",
            "--basis 'exact' is unknown; choose one of 'landmarks', 'shared'",
        ),
        (f"{SEVERAL} --basis exact --n-landmarks 5", "leave --n-landmarks at None"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(options, sentence, blobs, tmp_path, capsys):
    said = refuse(capsys, "fit", blobs, "--model", tmp_path / "m", *options.split())
    assert sentence in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kernels", "sentence"),
    [
        ("cubic", "'cubic' is no kernel; give linear, rbf, rbf:GAMMA, poly or poly:DEGREE"),
        ("linear:2", "'linear:2' is no kernel"),
        ("rbf:", "'rbf:' is no kernel"),
        ("linear,,rbf", "'' is no kernel"),
        ("linear,auto", "'auto' is no kernel"),
        ("linear,rbf:-1", "kernels[1] has gamma=-1.0; give a positive number or one of 'auto'"),
        ("rbf:wide", "kernels[0] has gamma='wide'; give a positive number or one of 'auto'"),
        ("poly:2.5", "kernels[0] has degree=2.5; give a whole number of at least 1"),
    ],
)
@pytest.mark.parametrize("verb", ["fit", "plan"])
def test_kernels_that_are_none_are_refused_as_they_are_read(verb, kernels, sentence, capsys):
    outputs = ["--model", "m"] if verb == "fit" else []
    with pytest.raises(SystemExit) as stopped:
        main([verb, "no.zarr", "--method", "multiple-kernel-clustering", *outputs, "--kernels", kernels])
    streams = capsys.readouterr()
    assert stopped.value.code == 2
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    assert f"argument --kernels: {sentence}" in streams.err


def test_kernels_reach_the_estimator_and_their_weights_the_verdict(blobs, tmp_path, capsys):
    words = ["fit", blobs, *SEVERAL.split(), "--sample-size", 100, "--random-state", 0, "--model"]
    listed = ["--kernels", "linear, poly:2,rbf:0.5,rbf:median,rbf", "--threshold", "fixed"]
    report = run(capsys, *words, tmp_path / "m", *listed)
    model = mmcnb.load(tmp_path / "m")
    rbf = [("rbf", {"gamma": 0.5}), ("rbf", {"gamma": "median"}), "rbf"]
    expected = mmcnb.MultipleKernelClustering(
        kernels=["linear", ("poly", {"degree": 2}), *rbf],
        threshold="fixed",
        sample_size=100,
        random_state=0,
    ).fit(mmcnb.open_samples(blobs))
    np.testing.assert_array_equal(report["kernel_weights"], expected.kernel_weights_)
    assert report["kernel_names"] == model.kernel_names_ == expected.kernel_names_
    assert model.get_params()["threshold"] == "fixed"
    assert main([*map(str, words), str(tmp_path / "a"), "--kernels", "auto"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("kernel weight")]
    automatic = mmcnb.load(tmp_path / "a")
    pairs = zip(automatic.kernel_weights_, automatic.kernel_names_, strict=True)
    assert shown == [f"kernel weight    {weight:.3f}  {name}" for weight, name in pairs]


def test_the_plan_counts_the_basis_of_each_kernel(capsys):
    words = ["plan", "--rows", 1000, "--features", 5, *SEVERAL.split(), "--kernels"]
    assert run(capsys, *words, "linear,rbf", "--n-landmarks", 20)["n_landmarks"] == 2 * 20
    assert run(capsys, *words, "linear,rbf,rbf:2", "--basis", "exact")["n_landmarks"] == 3 * 1000


@pytest.mark.parametrize("method", METHODS)
def test_rows_that_are_all_equal(method, tmp_path, capsys):
    store = stored(tmp_path / "equal.zarr", np.ones((50, 3)))
    said = refuse(capsys, "fit", store, "--method", method, "--model", tmp_path / "m")
    assert "all rows are equal" in said


@pytest.mark.parametrize("kernel", ["graph", "rbf"])
def test_rows_that_are_all_equal_under_a_kernel_that_is_given(kernel, tmp_path, capsys):
    store = stored(tmp_path / "equal.zarr", np.ones((50, 3)))
    said = refuse(capsys, "fit", store, "--kernel", kernel, "--model", tmp_path / "m")
    assert "all rows are equal" in said


@pytest.mark.parametrize(
    "method",
    ["maximum-margin-clustering", "crammer-singer-mmc", "unsupervised-rls", "multiple-kernel-clustering"],
)
def test_fewer_rows_that_differ_than_clusters(method, tmp_path, capsys):
    store = stored(tmp_path / "few.zarr", np.repeat(np.eye(3), 20, axis=0))
    said = refuse(capsys, "fit", store, "--method", method, "--n-clusters", 4, "--model", tmp_path / "m")
    assert "3 rows that differ, fewer than --n-clusters 4" in said


@pytest.mark.parametrize("verb", ["fit", "plan"])
@pytest.mark.parametrize("method", ["unsupervised-rls", "evolutionary-mmc"])
def test_a_kernel_matrix_that_does_not_fit_names_its_bytes_and_an_option(verb, method, tmp_path, capsys):
    store = tmp_path / "rows.zarr"
    write_synthetic("blobs", store, 4200, 2)
    outputs = ["--model", tmp_path / "m"] if verb == "fit" else []
    words = [verb, store, "--method", method, *outputs, "--memory-limit", "400MiB", "--sample-size"]
    said = refuse(capsys, *words, 4200)
    assert "135 MiB" in said  # 8 * 4,200²
    assert "--sample-size" in said
    assert "--memory-limit" in said
    if method == "unsupervised-rls":
        fits = int(said.partition("give --sample-size ")[2].split()[0])
        run(capsys, *words, fits)


def test_a_path_that_is_called_like_a_parameter_keeps_its_name():
    sentences = {
        "sample_size=5 is wrong; raise memory_limit.": "--sample-size 5 is wrong; raise --memory-limit.",
        "there/sample_size.zarr: no n_init here": "there/sample_size.zarr: no --n-init here",
        "min_share.zarr and a scale": "min_share.zarr and a scale",
    }
    for said, meant in sentences.items():
        with pytest.raises(mmcnb.errors.InputError) as told, option_names():
            raise mmcnb.errors.InputError(said)
        assert str(told.value) == meant


@pytest.mark.parametrize("sizes", ["equal", ".5,.3,.2"])
@pytest.mark.parametrize("method", ["maximum-margin-clustering", "unsupervised-rls", "crammer-singer-mmc"])
def test_sizes_that_the_help_names_are_those_of_every_method_that_holds_them(method, sizes, capsys):
    words = ["plan", "--rows", 600, "--features", 3, "--method", method, "--n-clusters", 3]
    assert run(capsys, *words, "--cluster-sizes", sizes)["method"] == method
    named = set(re.findall('"(.*?)"', PARAMETERS["cluster_sizes"]["help"]))
    assert named == {"equal"}


@pytest.mark.parametrize(
    "options",
    [
        *({}, {"n_clusters": 5}, {"kernel": "graph", "n_clusters": 5}, {"kernel": "rbf"}),
        *(
            {"kernel": "linear"},
            {"loss": "hinge"},
            {"loss": "hinge", "n_clusters": 5},
            {"kernel": "rbf", "cluster_sizes": "equal"},
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
    either, graph, function = (
        run(capsys, *words, *kernel) for kernel in ([], ["--kernel", "graph"], ["--kernel", "rbf"])
    )
    assert either["peak"] >= max(graph["peak"], function["peak"])
    assert graph["reads"] == 2 + (graph["store"] == "recompute")  # the sample, and the labels


@pytest.mark.parametrize(
    "method", [method for method in METHODS if {"sample_size", "n_landmarks"} <= parameters_of(method)]
)
def test_the_plan_is_that_of_the_fit(method, blobs, capsys):
    """The same basis and sample as the estimator plans with; more of either needs more memory."""
    options = ["--memory-limit", "1GiB", "--method", method, "--sample-size"]  # what is free changes
    by_store = run(capsys, "plan", blobs, *options, 200)
    by_hand = ["plan", "--rows", ROWS, "--features", FEATURES, *options, 200]
    report = run(capsys, *by_hand)
    assert by_store == report
    estimator = estimator_class(method)(sample_size=200)
    assert report["n_landmarks"] == estimator._needs(ROWS).n_landmarks
    larger = run(capsys, *by_hand[:-1], 500)
    assert larger["sample"] > report["sample"]
    estimator.set_params(n_landmarks=20)
    assert run(capsys, *by_hand, "--n-landmarks", 20)["n_landmarks"] == estimator._needs(ROWS).n_landmarks


def test_the_plan_knows_the_sample_that_many_clusters_take(capsys):
    words = ["plan", "--rows", 10**6, "--features", 20, "--method", "unsupervised-rls", "--n-clusters"]
    few, many = (run(capsys, *words, k) for k in (10, 40))
    assert many["work"] > 3 * few["work"]  # 4,000 rows for 2,000
