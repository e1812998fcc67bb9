"""`mmcnb fit` and `mmcnb predict`: the estimators, their parameters as options, and a verdict in words."""

import re
import shlex

import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.base import clone

import mmcnb
from mmcnb.cli import main
from mmcnb.stores import create_dense_store
from tests.cli.conftest import ROWS, contents

FEW = {"n_init": 2, "sample_size": 60, "random_state": 3}
METHODS = {
    "maximum-margin-clustering": mmcnb.MaximumMarginClustering(3, random_state=3),
    "sparse-kernel-mmc": mmcnb.SparseKernelMMC(**FEW),
    "crammer-singer-mmc": mmcnb.CrammerSingerMMC(3, **FEW),
    "unsupervised-rls": mmcnb.UnsupervisedRLS(3, **FEW),
    "evolutionary-mmc": mmcnb.EvolutionaryMMC(**FEW),
    "multiple-kernel-clustering": mmcnb.MultipleKernelClustering(3, **FEW),
    "kernel-kmeans": mmcnb.KernelKMeans(3, **FEW),
    "cpmmc": mmcnb.CPMMC(eta=0.02, continuation=False, **FEW),
    "kernel-cpmmc": mmcnb.KernelCPMMC(n_init=2, max_rounds=20, random_state=3),
}


def changed_parameters(estimator):
    """The parameters that are not at their defaults."""
    defaults = type(estimator)().get_params()
    return {
        name: value
        for name, value in estimator.get_params().items()
        if value != defaults[name]
    }


def settings(parameters):
    """Each parameter as ``--set name=value``."""
    return [
        word
        for name, value in parameters.items()
        for word in ("--set", f"{name}={value}")
    ]


def lines_of(name, text):
    return [line for line in text.splitlines() if line.startswith(f"{name} ")]


@pytest.mark.parametrize("method", METHODS)
def test_each_method_fits_and_predicts_as_its_estimator(method, folder, report_of):
    estimator = METHODS[method]
    options = settings(changed_parameters(estimator))
    fit = report_of(
        f"fit blobs.zarr --method {method} --model m --labels fit.zarr", *options
    )
    report = report_of("predict m blobs.zarr --labels predict.zarr")
    model = clone(estimator).fit(mmcnb.open_samples("blobs.zarr"))
    for path in ("fit.zarr", "predict.zarr"):
        np.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], model.labels_)
    assert type(mmcnb.load("m")) is type(estimator)
    assert fit["method"] == method
    assert fit["objective"] == model.objective_
    assert sum(fit["sizes"] or fit["sample_sizes"]) == (ROWS if fit["sizes"] else 60)
    assert report["n_samples"] == ROWS


@pytest.mark.slow
def test_a_cluster_gives_the_labels_of_threads(folder, printed, dask_client):
    address = dask_client(2).scheduler.address
    printed(f"fit blobs.zarr --random-state 0 --labels fit.csv --dask {address}")
    printed(f"predict blobs.model blobs.zarr --labels predict.csv --dask {address}")
    expected = (folder / "blobs-labels.csv").read_text()
    assert (
        (folder / "fit.csv").read_text()
        == (folder / "predict.csv").read_text()
        == expected
    )


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (
            "--n-clusters 2,5 --min-cluster-size .05 --noise .02 --n-nodes 70 --metric cosine",
            {
                "n_clusters": [2, 5],
                "min_cluster_size": 0.05,
                "noise": 0.02,
                "n_nodes": 70,
                "metric": "cosine",
            },
        ),
        (
            "--n-clusters 3 --kernel rbf --scale None --random-state 5",
            {"n_clusters": 3, "kernel": "rbf", "scale": None, "random_state": 5},
        ),
        (
            "--method unsupervised-rls --n-clusters 3 --set cluster_sizes=.5,.3,.2 --set gamma=median",
            {"n_clusters": 3, "cluster_sizes": [0.5, 0.3, 0.2], "gamma": "median"},
        ),
        (
            "--method multiple-kernel-clustering --set kernels=['linear',('poly',{'degree':2})]"
            " --set sample_size=60 --set n_init=1",
            {"kernels": ["linear", ["poly", {"degree": 2}]]},
        ),
        (
            "--method multiple-kernel-clustering --set kernels=linear,rbf --set sample_size=60",
            {"kernels": ["linear", "rbf"]},
        ),
    ],
)
def test_options_reach_the_estimator(options, parameters, folder, printed):
    printed(f"fit blobs.zarr --memory-limit 8GiB --jobs 1 --model m {options}")
    saved = mmcnb.load("m").get_params()
    assert {name: saved[name] for name in parameters} == parameters
    assert saved["verbose"] == 0


@pytest.mark.parametrize("method", ["maximum-margin-clustering", "cpmmc"])
def test_help_lists_the_parameters_of_a_method(method, capsys, printed):
    with pytest.raises(SystemExit, match="0"):
        printed(f"fit --method {method} --help")
    listed = capsys.readouterr().out.partition(f"parameters of {method}")[2]
    names = ", ".join(re.findall(r"^(\w[\w, ]*) :", listed, re.MULTILINE)).split(", ")
    how_it_runs = {"memory_limit", "n_jobs", "engine", "checkpoint", "verbose"}
    assert set(names) == set(METHODS[method].get_params()) - how_it_runs - {
        "random_state"
    }


def test_one_cluster_and_one_resolution_are_singular(folder, printed):
    X = np.random.default_rng(0).normal(size=(300, 5))
    np.save("noise.npy", X)
    text = printed("fit noise.npy --random-state 0 --labels noise.csv")
    assert lines_of("layer", text) == ["layer            1 cluster, selected"]
    np.save("blobs.npy", X + 20 * (np.arange(300) % 3)[:, None])
    text = printed("fit blobs.npy --n-clusters 9 --random-state 0 --labels b.csv")
    assert not [line for line in text.splitlines() if " 1 resolutions" in line]


def test_the_verdict_is_that_of_the_model(folder, report_of, printed):
    report = report_of("fit blobs.zarr --random-state 0 --model m")
    text = printed("fit blobs.zarr --random-state 0 --model m --overwrite")
    model = mmcnb.load("m")
    for name in ("candidate", "kernel", "objective", "n_clusters"):
        assert report[name] == getattr(model, f"{name}_")
    for name in ("sizes", "trust", "number", "layers"):
        assert report[name] == model.report_[name]
    assert report["n_clusters"] == 3
    assert report["peak_memory_bytes"] > 2**20
    shares = ", ".join(f"{size} ({size / ROWS:.1%})" for size in report["sizes"])
    assert lines_of("cluster sizes", text) == [f"cluster sizes    {shares}"]
    assert lines_of("candidate", text) == [f"candidate        {report['candidate']}"]
    assert lines_of("number", text) == [
        f"number           {report['number']['reason']}"
    ]
    trust = report["trust"]
    assert lines_of("trust", text) == [
        f"trust            {trust['level']}: {trust['reason']}"
    ]
    (layer,) = report["layers"]
    found = f"layer            3 clusters, found at {layer['persistence']} resolutions"
    assert lines_of("layer", text) == [
        f"{found}, the smallest of about {layer['smallest']} rows, selected"
    ]
    assert lines_of("model", text) == ["model            m"]
    assert lines_of("noise", text) == lines_of("gamma", text) == []
    assert report_of("fit blobs.zarr --n-clusters 3 --labels l.csv")["number"] is None


def test_the_verdict_of_a_machine_has_its_width_and_its_norm(
    folder, report_of, printed
):
    command = "fit blobs.zarr --method sparse-kernel-mmc --set gamma=0.1 --set n_init=1 --random-state 1 --model"
    report = report_of(command, "a")
    assert report["w_norm"] > report["w_norm_random"] > 0
    text = printed(command, "b")
    assert lines_of("gamma", text) == ["gamma            0.1"]
    norms = f"{report['w_norm']:.5g}; random labels give {report['w_norm_random']:.5g}"
    assert lines_of("|w|", text) == [f"|w|              {norms}"]
    assert (
        report_of(command, "c", "--n-clusters", 2)["objective"] == report["objective"]
    )


def test_the_verdict_of_several_kernels_has_their_weights(folder, printed):
    words = "--method multiple-kernel-clustering --set sample_size=60 --set n_init=1"
    text = printed(f"fit blobs.zarr --model m {words}")
    model = mmcnb.load("m")
    weights = zip(model.kernel_weights_, model.kernel_names_, strict=True)
    assert lines_of("kernel weight", text) == [
        f"kernel weight    {w:.3f}  {name}" for w, name in weights
    ]


def test_noise_is_labelled_and_counted(folder, report_of, printed):
    command = "fit blobs.zarr --random-state 0 --noise .1 --model m --labels l.csv --overwrite"
    report = report_of(command)
    labels = pd.read_csv("l.csv")["cluster"]
    assert report["noise"] == (labels == -1).sum() == 15
    assert report["sizes"] == np.bincount(labels[labels >= 0]).tolist()
    assert lines_of("noise", printed(command)) == [
        "noise            15 rows, labelled -1"
    ]
    report_of("predict m blobs.zarr --labels again.csv")
    assert (folder / "again.csv").read_text() == (folder / "l.csv").read_text()


def test_layers_are_columns_of_the_labels(folder, report_of, printed):
    fit = "fit blobs.zarr --n-clusters 2 --random-state 0 --model m --labels"
    report_of(fit, "l.csv", "--layers")
    assert "to fit" in printed(fit, "plain.csv", "--overwrite")
    labels = pd.read_csv("l.csv")
    assert labels.columns.tolist() == ["row", "cluster", "margin", "layer_3"]
    model = mmcnb.load("m")
    np.testing.assert_array_equal(
        labels["layer_3"], model.predict("blobs.zarr", layer=1)
    )
    pd.testing.assert_frame_equal(
        pd.read_csv("plain.csv"), labels.drop(columns="layer_3")
    )


def test_rows_that_are_all_equal_are_one_cluster(folder, report_of, refusal_of):
    with create_dense_store("equal.zarr", 3) as writer:
        writer.append(np.ones((50, 3), np.float32))
    report = report_of("fit equal.zarr --labels l.csv")
    assert (report["n_clusters"], report["sizes"], report["layers"]) == (1, [50], [])
    assert (
        report["number"]["reason"]
        == "one cluster: all rows are equal, or differ by less than rounding."
    )
    assert pd.read_csv("l.csv")["cluster"].tolist() == [0] * 50
    assert "all rows are equal" in refusal_of("fit equal.zarr --n-clusters 2 --model m")
    assert "has no merge tree" in refusal_of(
        "fit equal.zarr --labels layers.csv --layers"
    )


@pytest.mark.filterwarnings("default:.*no checksums")
def test_rows_without_checksums_are_said_to_have_none(folder, capsys):
    zarr.create_array(
        "foreign.zarr", data=mmcnb.open_samples("blobs.zarr").block(0, ROWS)
    )
    assert main(["fit", "foreign.zarr", "--model", "m"]) == 0
    warned = capsys.readouterr().err
    assert warned.startswith("mmcnb: warning: ")
    assert "no checksums" in warned
    assert "mmcnb convert" in warned


@pytest.mark.parametrize("ending", ["parquet", "npy"])
def test_files_that_are_no_stores_are_not_said_to_lack_checksums(
    ending, folder, capsys
):
    rows = mmcnb.open_samples("blobs.zarr").block(0, ROWS)
    np.save("rows.npy", rows)
    pd.DataFrame(rows).add_prefix("c").to_parquet("rows.parquet")
    words = ["fit", f"rows.{ending}", "--model", "m", "--labels", "l.csv"]
    assert main(words) == 0
    assert "checksums" not in capsys.readouterr().err
    assert main(["info", "m"]) == 0
    assert "checksums" not in capsys.readouterr().out


@pytest.mark.filterwarnings("default:.*no checksums")
@pytest.mark.filterwarnings("ignore:Writing zarr v2")
@pytest.mark.parametrize("element", ["X", "layers/counts", "obsm/X_pca"])
def test_the_command_that_copies_an_element_works(element, folder, capsys, printed):
    anndata = pytest.importorskip("anndata", reason="anndata is an extra")
    rows = mmcnb.open_samples("blobs.zarr").block(0, ROWS)
    cells = anndata.AnnData(rows, layers={"counts": rows + 1})
    cells.obsm["X_pca"] = rows[:, :2]
    cells.write_zarr("my cells.zarr")
    words = ["fit", "my cells.zarr", "--element", element, "--model", "m"]
    assert main(words) == 0
    told = capsys.readouterr().err.split("`")[1]
    program, *words = shlex.split(told)
    assert program == "mmcnb"
    printed("", *words)
    expected = mmcnb.open_samples("my cells.zarr", element)
    assert mmcnb.open_samples("OUT.zarr").digest == expected.digest


@pytest.mark.parametrize("output", ["l.csv", "l.parquet", "l.zarr", "l"])
def test_labels_have_the_form_of_their_ending_and_are_replaced_whole(
    output, folder, printed, refusal_of
):
    predict = f"predict blobs.model blobs.zarr --labels {output}"
    printed(predict)
    before = contents(folder)
    assert f"/{output} exists already: choose another path" in refusal_of(predict)
    printed(predict, "--overwrite")
    assert contents(folder) == before
    expected = mmcnb.load("blobs.model").to_frame("blobs.zarr")
    if output in ("l.csv", "l.parquet"):
        table = pd.read_csv(output) if output == "l.csv" else pd.read_parquet(output)
        assert table["row"].tolist() == list(range(ROWS))
        pd.testing.assert_frame_equal(
            table.drop(columns="row"), expected, check_dtype=False
        )
    else:
        np.testing.assert_array_equal(
            zarr.open_array(output, mode="r")[:], expected["cluster"]
        )
