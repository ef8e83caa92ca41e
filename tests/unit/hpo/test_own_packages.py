"""A folder or file of the user's that has the name of a package of Warmband's, as Python's path finds it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hpo.own_packages import check_own
from tests.support.refusals import refuses
from trainers.lazy import load_when_used
from trainers.script.module.warmband import installed

CHECKS: list[Callable[[str], object]] = [check_own, installed]


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a package that lies beside `hpo`, as before its first import."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "experiments"]:
        monkeypatch.delitem(sys.modules, name)
    return "experiments"


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("kind", ["package", "folder", "file"])
def test_what_hides_a_package_is_named_with_the_remedy(
    unloaded: str, check: Callable[[str], object], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hides = tmp_path / (f"{unloaded}.py" if kind == "file" else unloaded)
    file = hides if kind == "file" else hides / ("__init__.py" if kind == "package" else "notes.py")
    file.parent.mkdir(exist_ok=True)
    file.write_text("raise SystemExit('a program of the user ran')\n")
    # A folder without __init__ hides only what an installation of a checkout finds, behind the whole path.
    monkeypatch.setattr(sys, "path", [str(tmp_path)] if kind == "folder" else [str(tmp_path), *sys.path])
    with refuses(ImportError, field=unloaded, value=str(hides), remedy=("rename", "-P", "PYTHONPATH")):
        check(unloaded)


@pytest.mark.parametrize("check", CHECKS)
def test_warmbands_own_package_is_not_refused(unloaded: str, check: Callable[[str], object]) -> None:
    check(unloaded)


def test_one_that_is_loaded_already_is_looked_at(unloaded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, unloaded, pytest)
    with refuses(ImportError, field=unloaded, value=str(Path(str(pytest.__file__)).parent)):
        check_own(unloaded)


def test_compiled_files_alone_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sourceless:
        def get_source(self, name: str) -> None:
            return None

    package = type(sys)("compiled")
    vars(package).update(__loader__=Sourceless(), __file__="/lib/compiled/__init__.pyc")
    monkeypatch.setitem(sys.modules, "compiled", package)
    load_when_used("compiled")
    with refuses(ImportError, field="compiled", value="/lib/compiled/__init__.pyc", remedy="wheel"):
        package.Anything  # noqa: B018
