"""A job that goes on with other versions or other code says so before it trains."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from hpo.jobs.driver import drive
from hpo.record.store import Store
from tests.support.command import run as hpo
from tests.support.own_jobs import RANGES, interrupted, line, tuner


@pytest.fixture
def stopped(package_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a job of a user's own trainer, stopped at its fifth report."""
    made = tuner(package_folder, line(package_folder), RANGES)
    monkeypatch.syspath_prepend(package_folder)
    interrupted(made)
    return package_folder


def resumed(name: str = "job") -> str:
    out = io.StringIO()
    console = Console(file=out, width=10_000)
    drive(None, name, console=console, resume=True, allowed=["shop.training:Line"])
    return out.getvalue()


def test_a_resume_with_the_same_code_and_versions_warns_of_nothing(stopped: Path) -> None:
    assert "another content" not in resumed()
    with Store() as store:
        assert "continued" not in store.job("job").spec


def test_a_resume_with_other_code_and_another_version_names_both_and_the_record_keeps_them(
    stopped: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store() as store:
        spec = store.job("job").spec
        store.update_job("job", spec={**spec, "environment": {**spec["environment"], "xgboost": "3.1.9"}})
    with (stopped / "shop" / "training.py").open("a") as file:
        file.write("\n# A new line.\n")
    said = resumed()
    for text in ("warning: xgboost is ", ", and was 3.1.9; shop/training.py has another content", "begin another job"):
        assert said.count(text) == 1
    assert said.index("another content") < said.index("Completed")
    with Store() as store:
        after = store.job("job").spec
        assert after["environment"]["xgboost"] != "3.1.9"
        assert after["contents"] != spec["contents"]
        [entry] = after["continued"]
        assert len(entry["differences"]) == 2
    assert hpo(monkeypatch, "logs", "job") == 0
    assert "shop/training.py has another content" in capsys.readouterr().out
    assert hpo(monkeypatch, "describe", "job") == 0
    assert "resumed with" in capsys.readouterr().out


def test_a_job_without_trials_mixes_nothing(stopped: Path) -> None:
    with Store() as store:
        row = store.job("job")
        store.create_job(replace(row, name="new", status="InProgress", reason="", summary={}))
    with (stopped / "shop" / "training.py").open("a") as file:
        file.write("\n# A new line.\n")
    assert "another content" not in resumed("new")
    with Store() as store:
        assert "continued" not in store.job("new").spec
