"""Colours of the report's page and of the console: each is defined once, in a file that both use."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from starlette.testclient import TestClient

import hpo
from hpo.report import Page, colours
from hpo.serve import ServeSettings, make_app

ROOT = Path(hpo.__file__).parent
COLOUR = re.compile(r"#[0-9a-f]{3,8}\b(?=[^{]*[;)])|\b(?:rgba?|hsla?|oklch|light-dark)\(", re.IGNORECASE)
NAMED = re.compile(r"--([a-z0-9]+):")
USED = re.compile(r"var\(--([a-z0-9]+)")
STYLES = [path for path in ROOT.rglob("*.css") if path.name != "colours.css"]


def test_no_style_defines_a_colour_of_its_own() -> None:
    assert {path.name for path in STYLES} >= {"page.css", "console.css", "acts.css"}
    pages = [*STYLES, *ROOT.rglob("*.html")]
    assert {str(path): found for path in pages if (found := COLOUR.findall(path.read_text()))} == {}


def test_each_variable_is_defined_once_and_used() -> None:
    defined = NAMED.findall(colours())
    assert [name for name, count in Counter(defined).items() if count > 1] == []
    assert not set(defined) & {name for path in STYLES for name in NAMED.findall(path.read_text())}
    scripts = "".join(path.read_text() for path in ROOT.rglob("*.js"))
    used = {name for path in STYLES for name in USED.findall(path.read_text())}
    used |= set(re.findall(r'"--([a-z0-9]+)"', scripts)) | set(USED.findall(scripts))
    assert set(defined) - used == set()


def test_the_report_and_the_console_use_them(tmp_path: Path) -> None:
    assert colours() in Page(title="t", verdict="v", sections=()).html()
    app = make_app(ServeSettings(store=f"sqlite:///{tmp_path}/store.db", folder=tmp_path / "serve"))
    with TestClient(app, base_url="http://localhost") as client:
        served = client.get("/static/colours.css")
        assert (served.text, served.headers["content-type"]) == (colours(), "text/css; charset=utf-8")
        page = client.get("/").text
        assert page.index("/static/colours.css") < page.index("/static/console.css")
