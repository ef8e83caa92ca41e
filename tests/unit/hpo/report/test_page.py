"""Pages as HTML: what is in them comes out again as it went in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from hpo.report import Code, Column, Facts, Page, Section, Table, Text
from hpo.report.page.page import Block, inline
from tests.support.hpo.report.page import picture
from tests.support.pages import Read
from tests.support.properties import examples
from tests.support.refusals import refuses

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), min_size=1)
EVIL = st.sampled_from(
    ["</script>", "<!--", "-->", '"', "'", "&lt;", "<img src=x onerror=alert(1)>", "{{ 7*7 }}", "\u2028"]
)
NAMED = st.lists(TEXT | EVIL, min_size=1, max_size=3).map("".join)


def page(text: str) -> Page:
    """A page that has a text wherever somebody's text may stand, but in a picture."""
    blocks: list[Block] = [
        Text(text),
        Facts([(text, text)], text),
        Code(text, text, text),
        Code(text, caption=text, folded=True),
        Table([text, Column(text, choose=True)], [[text, text], [text, f"{text}2"]], text),
    ]
    return Page(text, text, [Section(text, blocks, text)], subtitle=text)


@settings(deadline=None, max_examples=examples(50))
@given(NAMED)
def test_text_comes_out_as_text(text: str) -> None:
    read, plain = Read(page(text).html()), Read(page("x").html())
    assert read.tags == plain.tags
    for tag in ("title", "h1", "h2", "code", "summary", "dt", "dd", "option"):
        for got, expected in zip(read.of(tag), plain.of(tag), strict=True):
            assert got == (expected if expected == "all" else expected.replace("x", text))
    assert text in read.attributes


@given(NAMED)
def test_what_a_picture_holds_cannot_leave_its_script(text: str) -> None:
    data = json.dumps({"name": text, text: [text]}, ensure_ascii=False)
    held = str(inline(data))
    assert json.loads(held) == json.loads(data)
    assert not set(held) & set("<>&\u2028\u2029")


def test_a_picture_comes_with_its_numbers_and_without_the_colours_of_one_scheme() -> None:
    read = Read(Page("t", "v", [Section("s", [picture("</script>\u2028")])]).html())
    ((drawing,),) = [json.loads(text) for text in read.of("script") if text.startswith('[{"data"')]
    assert drawing["layout"]["meta"] == {"text": "</script>\u2028"}
    assert "template" not in drawing["layout"]
    (templates,) = [json.loads(text) for text in read.of("script") if text.startswith('{"light"')]
    assert templates["light"] != templates["dark"]


def test_the_library_is_there_once() -> None:
    one = Page("t", "v", [Section("s", [picture("a")])]).html()
    two = Page("t", "v", [Section("s", [picture("a"), picture("b")])]).html()
    assert len(two) - len(one) < 10_000


def test_sections_of_one_name_have_places_of_their_own() -> None:
    sections = [Section(title, [Text("x")]) for title in ("Cost", "cost!", "Cost 2", "", "…")]
    html = Page("t", "v", sections).html()
    for name in ("cost", "cost-2", "cost-2-2", "part", "part-2"):
        assert html.count(f'<h2 id="{name}">') == 1
        assert f'<a href="#{name}">' in html


def test_paragraphs_are_kept_apart() -> None:
    html = Page("t", "v", [Section("s", [Text("\none\nand a half\n\n \ntwo\n")])]).html()
    assert "<p>one\nand a half</p>\n<p>two</p>" in html


def test_a_row_has_a_cell_a_column() -> None:
    with refuses(ValueError, field="zip()"):
        Page("t", "v", [Section("s", [Table(["a", "b"], [[1]])])]).html()


def test_a_column_of_numbers_is_set_as_one() -> None:
    rows = [["a", 1, 0.5, "x"], ["b", None, 0.25, 3]]
    html = Page("t", "v", [Section("s", [Table(["w", "n", Column("f", 3), "m"], rows)])]).html()
    assert '<td class="number" data-number="1">1</td>' in html
    assert '<td class="number" data-number="0.25">0.250</td>' in html
    assert '<td class="brief" data-number="3">3</td>' in html


@pytest.mark.parametrize(("rows", "searched"), [(12, False), (13, True)])
def test_only_a_long_table_is_searched(rows: int, searched: bool) -> None:
    html = Page("t", "v", [Section("s", [Table(["a"], [[number] for number in range(rows)])])]).html()
    assert ('type="search"' in html) is searched


def test_two_pages_of_the_same_are_the_same() -> None:
    assert page("x").html() == page("x").html()


@pytest.mark.parametrize("write", [Page.write, Page.write_pictures])
def test_where_nothing_can_be_written_the_system_says_so(write: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with refuses(OSError, field=str(tmp_path / "file")):
        write(Page("t", "v", [Section("s", [picture("a")])]), tmp_path / "file" / "page")
