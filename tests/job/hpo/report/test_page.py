"""Pages as HTML: what is in them comes out again as it went in."""

from __future__ import annotations

from pathlib import Path

from hpo.report import Page, Section, Text
from tests.support.hpo.report.page import picture


def test_files_are_written_and_a_second_picture_of_a_name_is_another(tmp_path: Path) -> None:
    whole = Page("t", "half a pair: \ud800", [Section("s", [picture("a"), Text("x"), picture("b")])])
    assert whole.write(tmp_path / "page.html").read_bytes().startswith(b"<!doctype html>")
    written = whole.write_pictures(tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["same.png", "same.svg", "same-2.png", "same-2.svg"]
    assert all(path.stat().st_size for path in written)
