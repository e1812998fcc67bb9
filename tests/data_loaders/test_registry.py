"""The facts, the check of files against them, pairs of classes and random draws."""

import numpy as np
import pytest

import data_loaders
from data_loaders import Source
from mmcnb import InputError

# Rows, features and imbalance in per cent, as Tab. I and Tab. IV of the SKMMC paper
# print them, with two slips undone: the imbalance of breast is of its 683 rows and that
# of satellite of both files.
TABLES = {
    "spectf": (267, 44, 58.80),
    "breast": (683, 9, 30.01),
    "german": (1000, 24, 40.00),
    "waveform-1v2": (3308, 40, 0.06),
    "mnist-3v8": (13966, 784, 2.26),
    "adult": (32561, 123, 51.84),
    "usps-extended": (266079, 676, 8.59),
}
OPTIONS = [
    ({"rows": 0}, "rows is 0; australian has 1 to 690 rows"),
    ({"rows": 691}, "rows is 691"),
    ({"features": 7}, "features is 7, but australian has 14"),
    ({"layout": "csc"}, "layout is 'csc'; give 'dense' or 'csr'"),
]
TEXTS = [
    ("1 " * 14 + "1\n" + "1 1\n", "cannot be parsed"),
    ("1 " * 13 + "x 1\n", "cannot be parsed"),
    ("1 " * 13 + "nan 1\n", "not finite"),
    (
        "1 2 1\n",
        "should have 14 features a row but have 2; get the original from https",
    ),
    (
        "1 " * 14 + "1\n",
        "should have classes 0: 383, 1: 307 but have 1: 1; get the original from https",
    ),
    ("", "cannot be parsed|should have"),
]


@pytest.fixture
def facts():
    return {
        fact["name"]: fact for fact in data_loaders.registry(Source(download=False))
    }


def test_the_facts_are_those_of_the_papers_tables(facts):
    for name, (n_samples, n_features, imbalance) in TABLES.items():
        first, second = facts[name]["class_counts"].values()
        assert (facts[name]["n_samples"], facts[name]["n_features"]) == (
            n_samples,
            n_features,
        )
        assert 100 * abs(first - second) / n_samples == pytest.approx(
            imbalance, abs=0.005
        )


def test_the_registry_says_what_is_here(data_dir):
    source = Source(cache_dir=data_dir / "no downloads")
    here = {fact["name"] for fact in data_loaders.registry(source) if fact["found"]}
    assert here == {"australian"}


@pytest.mark.parametrize(
    "name", ["mnits", "mnist-1v1", "mnist-1v", "a9a-1v7", "letter-0v1", "mnist-AvB", ""]
)
def test_an_unknown_name_is_answered_with_the_names(name):
    sentence = rf"no data set called '{name}'; choose one of adult, a1a.*, rings, moons"
    with pytest.raises(InputError, match=sentence):
        data_loaders.load(name)


@pytest.mark.parametrize(("text", "sentence"), TEXTS)
def test_files_that_do_not_fit_the_facts_are_refused(data_dir, text, sentence):
    (data_dir / "australian/australian.dat").write_text(text)
    for rows in (None, 1):
        with pytest.raises(
            InputError, match=rf"australian: australian/australian\.dat .*({sentence})"
        ):
            data_loaders.load("australian", rows=rows)


@pytest.mark.parametrize(("options", "sentence"), OPTIONS)
def test_options_that_do_not_suit_are_refused(data_dir, options, sentence):
    with pytest.raises(InputError, match=sentence):
        data_loaders.load("australian", **options)
    with pytest.raises(InputError, match="rings can only be dense"):
        data_loaders.load("rings", layout="csr")


def test_draws_are_parts_of_larger_draws_in_row_order(data_dir):
    whole = [*map(bytes, data_loaders.load("australian")[0])]
    drawn = [
        [*map(bytes, data_loaders.load("australian", rows=rows)[0])]
        for rows in (40, 300, 690)
    ]
    for smaller, larger in zip(drawn, [*drawn[1:], whole], strict=True):
        remaining = iter(larger)
        assert all(row in remaining for row in smaller)
    other = data_loaders.load("australian", rows=40, random_state=1)[0]
    assert [*map(bytes, other)] != drawn[0]


def test_layouts_hold_the_same_numbers(data_dir):
    dense, y = data_loaders.load("australian")
    sparse, y_sparse = data_loaders.load("australian", layout="csr")
    np.testing.assert_array_equal(sparse.toarray(), dense)
    np.testing.assert_array_equal(y_sparse, y)
