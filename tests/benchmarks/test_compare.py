"""A commit beside the code here."""

import subprocess

import pytest

from benchmarks.compare import ROOT, WORK, main

IS_CHECKOUT = (ROOT / ".git").exists()


@pytest.mark.nightly
@pytest.mark.skipif(not IS_CHECKOUT, reason="these files are no git checkout")
def test_a_commit_takes_turns_with_the_code_here_and_leaves_nothing(capsys):
    trees = subprocess.run(["git", "-C", ROOT, "worktree", "list"], capture_output=True, check=True).stdout
    assert main(["HEAD", "--turns", "3", "--work", "steepest_moves", "rbf_kernel_block_into"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["work", "here", "there", "ratio", "of", "wall"]
    assert [row.split()[0] for row in rows] == ["steepest_moves", "rbf_kernel_block_into"]
    assert all(float(figure) > 0 for row in rows for figure in row.split()[1:])
    after = subprocess.run(["git", "-C", ROOT, "worktree", "list"], capture_output=True, check=True).stdout
    assert after == trees


@pytest.mark.skipif(not IS_CHECKOUT, reason="these files are no git checkout")
def test_what_is_no_commit_is_one_sentence(capsys):
    assert main(["no-such-commit", "--work", next(iter(WORK))]) == 2
    assert "no-such-commit is no commit" in capsys.readouterr().err
