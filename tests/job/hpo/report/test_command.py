"""`hpo report` on a record filled by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpo.cli import app
from hpo.record.store import Store
from tests.support.records import made_up, write
from tests.support.refusals import mentions, refuses
from trainers.errors import ConfigurationError


@pytest.fixture(autouse=True)
def record(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Store() as store:
        for name in ("bank", "churn"):
            write(store, made_up(name=name, trials=8))


def report(*arguments: str) -> str:
    result = CliRunner(env={"COLUMNS": "500", "TERM": "dumb"}).invoke(app, ["report", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result.stdout


def test_a_page_is_written_here_and_its_verdict_said(tmp_path: Path) -> None:
    said = report("bank").splitlines()
    verdict, written = said
    mentions(verdict, "validation:auc")
    mentions(written, "bank.html")
    assert verdict in (tmp_path / "bank.html").read_text(encoding="utf-8")


def test_several_names_make_one_page(tmp_path: Path) -> None:
    mentions(report("bank", "churn").splitlines()[-1], "bank-churn.html")
    mentions((tmp_path / "bank-churn.html").read_text(encoding="utf-8"), "bank", "churn")


def test_pictures_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    said = report("bank", "-o", "other.html", "--pictures", "pictures")
    written = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert {"learning-curves.png", "learning-curves.svg", "brackets.png"} <= set(written)
    *_, page, pictures = said.splitlines()
    mentions(page, "other.html")
    mentions(pictures, len(written), "pictures")


def test_a_page_that_is_there_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "bank.html").write_text("old")
    report("bank")
    assert (tmp_path / "bank.html").read_bytes().startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["bnak"], ("'bnak'", "'bank'", "warmband.db")),
        (["bank", "bank"], ("'bank'",)),
        (["bank", "-o", "gone/x.html"], ("--output", "gone/x.html", "No such file or directory")),
        (["bank", "--pictures", "bank.html/x"], ("--pictures", "bank.html/x", "Not a directory")),
        (["bank", "--store", "sqlite:///other.db"], ("'bank'", "sqlite:///other.db")),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], names: tuple[str, ...]) -> None:
    with refuses(ConfigurationError, field=names):
        report(*arguments)
