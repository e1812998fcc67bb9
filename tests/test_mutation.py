"""Mutants are single changes that compile, and those called equivalent are there."""

import ast

import pandas as pd
import pytest

from tests.mutation.__main__ import EQUIVALENT, TESTS
from tests.mutation.mutants import ROOT, mutants, source


def test_every_mutant_of_a_module_compiles_and_differs():
    whole = compile(source("mmcnb.hinge.qp").read_text(encoding="utf-8"), "qp", "exec")
    for mutant in mutants("mmcnb.hinge.qp"):
        assert mutant.code().co_consts != whole.co_consts or mutant.code().co_code != whole.co_code
        before, after = mutant.change.split(" -> ")
        assert before != after


def test_mutants_that_are_called_equivalent_are_there_each_with_a_reason():
    known = pd.read_csv(EQUIVALENT)
    assert known["reason"].notna().all()
    for module, rows in known.groupby("module"):
        lines = source(module).read_text(encoding="utf-8").splitlines()
        every = {(mutant.change, lines[mutant.line - 1].strip()) for mutant in mutants(module)}
        assert set(rows[["change", "line"]].itertuples(index=False, name=None)) <= every


@pytest.mark.parametrize("module", TESTS)
def test_modules_and_their_tests_are_there(module):
    ast.parse(source(module).read_text(encoding="utf-8"))
    assert all((ROOT / path).exists() for path in TESTS[module].split())
