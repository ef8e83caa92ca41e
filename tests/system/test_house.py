"""Packages stand in a list from the top down, nobody reaches past a package's face, and modules go in no circles."""

from __future__ import annotations

import subprocess

import pytest

from docs.house import ROOT


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone")
def test_the_top_of_the_repository_holds_what_it_is_to_hold() -> None:
    """What somebody leaves there by oversight is no part of it."""
    kept = {".ci", "docker", "docs", "experiments", "hpo", "tests", "trainers"}
    kept |= {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "constraints.txt", "pyproject.toml"}
    kept |= {".dockerignore", ".gitignore", ".pre-commit-config.yaml"}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name.partition("/")[0] for name in tracked.splitlines()} == kept
