"""Packages of extras that are not installed: the error names them and the command."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from importlib.util import find_spec

import pytest

from tests.support.processes import ROOT
from tests.support.refusals import refuses
from trainers import extras
from trainers.errors import ConfigurationError
from trainers.extras import EXTRAS, check_extra, install

DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
OF_DEVELOPERS = {"baselines", "dev", "docs", "frameworks"}


def test_every_extra_of_a_feature_is_known() -> None:
    assert {*EXTRAS} == {*DECLARED} - OF_DEVELOPERS


@pytest.fixture(scope="module")
def owners() -> Mapping[str, list[str]]:
    """The distributions of each module that is installed."""
    return packages_distributions()


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_brings_the_modules_that_are_looked_for(extra: str, owners: Mapping[str, list[str]]) -> None:
    brought = {requirement.partition(">")[0].partition("[")[0].lower() for requirement in DECLARED[extra]}
    for module in EXTRAS[extra]:
        assert find_spec(module) is not None
        names = {name.lower() for name in owners[module]}
        assert extra == "deploy" or names & (brought | {f"{name}-skinny" for name in names} & brought)


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_is_missing_is_named_with_the_command(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_extra("It", extra)
    gone = EXTRAS[extra][0]
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == gone else find_spec(name))
    with refuses(ConfigurationError, field="It", value=gone, remedy=install(extra)):
        check_extra("It", extra)
    if others := EXTRAS[extra][1:]:
        check_extra("It", extra, *others)
