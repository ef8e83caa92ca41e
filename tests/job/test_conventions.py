"""Conventions of the tests: they share through tests/support, pin no wording, and know PostgreSQL."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_no_test_module_imports_another() -> None:
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # Scripts for other processes.
                names = re.findall(r"^ *from (tests\.\S+) import", node.value, re.MULTILINE)
            for name in names:
                assert not name.startswith("tests.") or name.startswith("tests.support"), f"{path} imports {name}"


def test_no_test_pins_a_sentence_of_an_error() -> None:
    """`pytest.raises(..., match=...)` pins wording: tests use `refuses`, and the golden messages pin the rest."""
    sentence = re.compile(r"(?:\b[A-Za-z][a-z']*[,;:]? ){3,}[a-z]+")
    product = "".join(path.read_text() for floor in ("hpo", "trainers") for path in (ROOT / floor).rglob("*.py"))
    pinned = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "match":
                sentences = sentence.findall(ast.unparse(node.value).replace("\\", ""))
                pinned += [f"{path.relative_to(ROOT)}: {words!r}" for words in sentences if words in product]
    assert pinned == []


def test_every_test_of_a_database_runs_on_postgresql_too() -> None:
    """`make test-rest` runs these again, with --database=postgresql."""
    [line] = re.findall(r"^RECORD := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    patterns = re.sub(r"\$\(wildcard ([^)]*)\)", r"\1", line).split()
    covered = [path for pattern in patterns for path in ROOT.glob(pattern)]
    left_out = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        uses = any(isinstance(node, ast.arg) and node.arg == "database" for node in ast.walk(tree))
        if uses and "long" not in path.parts and not any(path.is_relative_to(each) for each in covered):
            left_out.append(str(path.relative_to(ROOT)))
    assert left_out == []


def test_every_property_tries_few_examples_in_make_test() -> None:
    """`settings(max_examples=100)` would try 100 there, too; `examples(100)` knows the profile."""
    raw = re.compile(r"max_examples=(?!(?:properties\.)?examples\()")
    assert [str(path) for path in (ROOT / "tests").rglob("test_*.py") if raw.search(path.read_text())] in (
        [],
        [__file__],
    )
