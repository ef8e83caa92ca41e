"""The package `warmband` outside jobs: its functions do nothing, and it has the public names of Warmband."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import hpo
import trainers
from tests.support.processes import ROOT
from tests.support.refusals import refuses
from trainers.script.module import warmband

FILE = Path(warmband.__file__ or "")


def fresh(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Its dataclasses look it up.
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


def test_outside_a_job_its_functions_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WARMBAND_REPORTS", "WARMBAND_HYPERPARAMETERS"):
        monkeypatch.delenv(name, raising=False)
    alone = fresh("warmband_alone")
    assert alone.report({"loss": 0.5}, step=1) is False
    assert alone.hyperparameters() == {}
    assert [vars(arguments) for arguments in alone.session()] == [{}]
    assert alone.keep(lambda: 3)() == 3


def test_it_has_the_public_names_of_both_packages() -> None:
    assert not {*hpo.__all__} & {*trainers.__all__}
    assert not {*hpo.__all__, *trainers.__all__} & {*warmband.__all__}
    for package, names in ((hpo, hpo.__all__), (trainers, trainers.__all__)):
        for name in names:
            assert getattr(warmband, name) is getattr(package, name)


@pytest.mark.parametrize("name", ["Tuner", "TRAINERS", "__path_of_nothing__"])
def test_other_names_are_refused_with_those_that_there_are(name: str) -> None:
    with refuses(AttributeError, field="warmband", value=name, remedy=("report", "hpo", "trainers")):
        getattr(warmband, name)


def test_it_is_installed_from_the_folder_that_jobs_put_on_the_path_of_programs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = project["tool"]["setuptools"]["packages"]["find"]
    assert FILE.parents[1] in {(ROOT / folder).resolve() for folder in found["where"]}
    assert "warmband" in found["include"]
    module, _, function = project["project"]["scripts"]["hpo"].partition(":")
    package, _, name = module.partition(".")
    assert package == "warmband"
    assert f"def {function}(" in (FILE.parent / f"{name}.py").read_text(encoding="utf-8")
