"""A command that cannot be carried out says so in one sentence, with exit code 2, and changes no file."""

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.datasets import write_synthetic
from tests.cli.conftest import ROWS, contents


@pytest.fixture
def folder_with_more(folder):
    """The working folder, with files that suit few commands."""
    write_synthetic("blobs", "wide.zarr", 50, 4)
    mmcnb.CPMMC(random_state=0).fit(mmcnb.open_samples("blobs.zarr")).save(
        "cpmmc.model"
    )
    pd.DataFrame({"cluster": range(5)}).to_csv("short.csv", index=False)
    pd.DataFrame({"cluster": [1.0, *[0.5] * (ROWS - 1)]}).to_csv(
        "halves.csv", index=False
    )
    pd.DataFrame({"age": np.arange(9.0), "income": np.arange(9.0)}).to_csv(
        "other.csv", index=False
    )
    (folder / "photos").mkdir()
    (folder / "photos" / "cat.png").write_text("cat")
    return folder


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        # The words of a command
        ("", "the following arguments are required: VERB"),
        ("fry", "invalid choice: 'fry'"),
        ("fit", "mmcnb fit: the following arguments are required: DATA"),
        (
            "fit blobs.zarr --model m --set C",
            "argument --set: 'C' has no value; write name=value",
        ),
        (
            "fit blobs.zarr --model m --jobs x",
            "argument --jobs: invalid int value: 'x'",
        ),
        ("fit blobs.zarr --model m --method svm", "invalid choice: 'svm'"),
        (
            "verify blobs.zarr --loss hinge",
            "--loss hinge; its options are --help, --element, --json",
        ),
        (
            "fit blobs.zarr",
            "nothing would be written; give --labels OUT.csv, or --model FILE",
        ),
        # A word that another library uses for an option, or a slip of the pen
        ("fit blobs.zarr --model m --nclusters 3", "perhaps --n-clusters is meant"),
        ("fit blobs.zarr --model m --seed=3", "perhaps --random-state is meant"),
        ("fit blobs.zarr --model m -k 3", "perhaps --n-clusters is meant"),
        ("fit blobs.zarr --model m --out l.csv", "perhaps --table is meant"),
        ("fit blobs.zarr --model m --output l.csv", "perhaps --table is meant"),
        (
            "fit blobs.zarr --model m --label-column y",
            "--label-column is an option of other verbs only (convert, info, score)",
        ),
        (
            "score blobs.zarr l.csv --hide-rows",
            "--hide-rows is an option of other verbs only (report)",
        ),
        # What is wrong with the input comes before what is missing from the command
        ("fit none.csv", "none.csv does not exist: check the path"),
        ("predict blobs.model none.csv", "none.csv does not exist: check the path"),
        (
            "fit customers",
            "customers does not exist: check the path; perhaps customers.csv",
        ),
        (
            "info blobs",
            "blobs does not exist: check the path; perhaps blobs.zarr is meant.",
        ),
        (
            "fit customers.csv --model m --scale income=log",
            "'standard'; or a dict such as {'income': 'log'} for single columns.",
        ),
        (
            "fit blobs.model --labels l.csv",
            "blobs.model is a model that mmcnb saved, not rows: give a table or a store",
        ),
        ("fit photos --labels photos/l.csv", "is inside the input photos"),
        ("plan", "either DATA or both --rows and --features"),
        ("plan --rows 5", "either DATA or both --rows and --features"),
        (
            "plan blobs.zarr --rows 5 --features 2",
            "either DATA or both --rows and --features",
        ),
        ("plan --rows 0 --features 2", "rows=0 is out of range"),
        # Parameters of a method
        (
            "fit blobs.zarr --model m --labels l.csv --kernel cubic",
            "kernel='cubic' is unknown",
        ),
        ("fit blobs.zarr --model m --n-clusters 5,3", "wrong order; pass (3, 5)"),
        (
            "fit blobs.zarr --model m --n-clusters 151",
            "n_clusters=151 is more than the 150 rows",
        ),
        ("fit blobs.zarr --model m --method cpmmc --set C=-1", "C=-1 is out of range"),
        ("fit blobs.zarr --model m --memory-limit lots", "memory_limit='lots'"),
        ("fit blobs.zarr --model m --memory-limit 1MiB", "the least that works is"),
        ("fit blobs.zarr --model m --jobs 0", "n_jobs=0"),
        (
            "fit blobs.zarr --model m --set memory_limit=1GiB",
            "has no parameter memory_limit",
        ),
        (
            "fit blobs.zarr --model m --set colour=red",
            "maximum-margin-clustering has no parameter colour; leave it out, or choose one of kernel,",
        ),
        (
            "fit blobs.zarr --model m --set gamma=1",
            "has no parameter gamma; leave it out, or choose --method sparse-kernel-mmc or",
        ),
        (
            "fit blobs.zarr --model m --method sparse-kernel-mmc --n-clusters 3",
            "has no parameter n_clusters; leave it out, or choose --method maximum-margin-clustering",
        ),
        (
            "fit blobs.zarr --model m --method unsupervised-rls --n-clusters 5 --set sample_size=4",
            "sample_size=4 is smaller than n_clusters=5",
        ),
        # Options that suit other methods, other outputs or other rows
        (
            "fit blobs.zarr --model m --layers",
            "--layers needs a table of labels; give --labels OUT.csv",
        ),
        (
            "fit blobs.zarr --labels l.zarr --layers",
            "--layers needs a table of labels",
        ),
        (
            "fit blobs.zarr --labels l.csv --layers --method cpmmc",
            "--layers applies to maximum-margin-clustering only, not to cpmmc; leave it out",
        ),
        (
            "fit blobs.zarr --like blobs.model --model m --method cpmmc",
            "--like applies to maximum-margin-clust",
        ),
        (
            "fit blobs.zarr --model m --thousands ,",
            "--thousands applies to CSV, Parquet and Arrow files",
        ),
        (
            "update cpmmc.model blobs.zarr",
            "cpmmc.model is a CPMMC, which cannot be updated; fit all rows",
        ),
        # Files that are not there, or something else
        ("info none.zarr", "none.zarr"),
        ("verify none.zarr", "none.zarr"),
        ("plan none.zarr", "none.zarr"),
        ("convert none.csv out.zarr", "none.csv"),
        ("fit none.zarr --model m --labels l.csv", "none.zarr"),
        (
            "fit blobs.zarr --like none.model --model m",
            "there is no model at none.model",
        ),
        ("fit blobs.zarr --like customers.csv --model m", "is not a model of mmcnb"),
        (
            "predict none.model blobs.zarr --labels l.csv",
            "there is no model at none.model",
        ),
        ("predict customers.csv blobs.zarr --labels l.csv", "is not a model of mmcnb"),
        ("update none.model new.csv", "there is no model at none.model"),
        ("update customers.model none.csv", "none.csv"),
        ("score blobs.zarr none.csv", "none.csv does not exist"),
        (
            "score blobs.zarr blobs.model",
            "blobs.model is a model that mmcnb saved, not rows: give a table",
        ),
        ("doctor none", "none is not a folder"),
        # Rows of another shape than the model, and labels of other rows
        ("predict blobs.model wide.zarr --labels l.csv", "wide.zarr has 4 features"),
        (
            "explain customers.model other.csv",
            "other.csv has no column 'spent', which the model needs: add it, or rename",
        ),
        (
            "explain customers.model customers.csv --labels short.csv",
            "short.csv has 5 values and",
        ),
        (
            "report customers.model customers.csv --labels short.csv --out p.html",
            "give one label for each row",
        ),
        (
            "score blobs.zarr short.csv",
            "150 rows; give one label for each row, in the order of the rows",
        ),
        (
            "score blobs.zarr blobs-labels.csv --classes short.csv",
            "short.csv has 5 values",
        ),
        (
            "score blobs.zarr halves.csv",
            "halves.csv has numbers such as 0.5; give whole numbers or names",
        ),
        (
            "score blobs.zarr blobs-labels.csv --label-column kind",
            "has no column 'kind' of labels; name one of row, cluster, margin",
        ),
        (
            "score other.csv short.csv --model customers.model",
            "other.csv has no column 'spent', which the model needs: add it, or rename",
        ),
        # Outputs
        (
            "fit blobs.zarr --model customers.model",
            "exists already: choose another path",
        ),
        ("predict blobs.model blobs.zarr --labels none/l.csv", "does not exist"),
        ("predict blobs.model blobs.zarr --labels photos --overwrite", "photos"),
        (
            "fit none.zarr --labels l.txt",
            "l.txt: labels are not written as '.txt'; give a path that ends with",
        ),
        (
            "fit blobs.zarr --model blobs.zarr --overwrite",
            "would replace the input blobs.zarr; choose another path",
        ),
        (
            "fit blobs.zarr --labels blobs.zarr/labels --overwrite",
            "is inside the input blobs.zarr",
        ),
        ("fit blobs.zarr --model . --overwrite", "contains the input blobs.zarr"),
        ("fit blobs.zarr --model a --labels a/l.csv", "is inside the output a"),
        (
            "fit blobs.zarr --like blobs.model --model blobs.model --overwrite",
            "would replace the input blobs.model",
        ),
        ("update customers.model new.csv --labels blobs-labels.csv", "exists already"),
        (
            "update customers.model new.csv --out new.csv --overwrite",
            "would replace the input new.csv",
        ),
        (
            "update customers.model new.csv --out blobs.model",
            "blobs.model exists already",
        ),
        (
            "report customers.model customers.csv --out customers.model --overwrite",
            "the output customers.model would replace the input",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(
    command, sentence, folder_with_more, refusal_of
):
    before = contents(folder_with_more)
    assert sentence in refusal_of(command)
    assert contents(folder_with_more) == before


def test_the_least_memory_that_a_refusal_names_works(refusal_of, report_of):
    plan = "plan --rows 4200 --features 2 --method unsupervised-rls --set sample_size=4200 --memory-limit"
    refusal = refusal_of(plan, "400MiB")
    assert "a smaller sample_size needs less" in refusal
    least = refusal.partition("the least that works is ")[2].split(";")[0]
    assert report_of(plan, least)["peak"] <= report_of(plan, "8GiB")["peak"]
