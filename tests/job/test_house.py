"""Packages stand in a list from the top down, nobody reaches past a package's face, and modules go in no circles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from docs.house import HOUSE, ROOT, SCRIPTS, table
from trainers.lazy import declared

MOST_LINES = 600
MOST_MODULES = 25


@dataclass(frozen=True)
class Import:
    """A name that a module takes from another of the project."""

    importer: str
    module: str
    name: str


@cache
def modules() -> dict[str, Path]:
    """The modules of the floors by their dotted names; a package's is that of its `__init__`."""
    found = {}
    for floor in HOUSE:
        for path in sorted((ROOT / floor).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_package(name: str) -> bool:
    return name in modules() and modules()[name].name == "__init__.py"


@cache
def imports() -> tuple[Import, ...]:
    """All imports, those in functions and under TYPE_CHECKING included."""
    return tuple(each for name, path in modules().items() for each in imports_of(name, path.read_text("utf-8")))


def imports_of(importer: str, source: str) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in HOUSE:
            yield from (Import(importer, node.module, name.name) for name in node.names)


def packages(name: str) -> list[str]:
    """The packages below the floor that a module is in, itself included where it is one, the outermost first."""
    parts = name.split(".")
    return [outer for end in range(2, len(parts) + 1) if is_package(outer := ".".join(parts[:end]))]


def home(each: Import) -> str:
    """The module that has what is imported: a submodule itself, or whom a face declares, however many faces on."""
    module, name = each.module, each.name
    while True:
        if f"{module}.{name}" in modules():
            return f"{module}.{name}"
        faces = declared(modules()[module].read_text("utf-8")) if is_package(module) else {}
        if name not in faces or faces[name] not in modules():
            return module
        module = faces[name]


def past_faces(found: Iterator[Import] | tuple[Import, ...]) -> list[str]:
    """Imports from within a package that the importer is not in, which its face does not declare.

    Packages of experiments/ have none: nothing but scripts uses them.
    """
    wrong = []
    for each in found:
        if each.module.startswith("experiments"):
            continue
        mine = packages(each.importer)
        inner = f"{each.module}.{each.name}" if f"{each.module}.{each.name}" in modules() else each.module
        foreign = [package for package in packages(inner) if package not in mine]
        if not foreign or foreign[0] == inner:
            continue  # A module of an open package, or the package itself.
        if each.module != foreign[0] or each.name not in faces_of(foreign[0]):
            wrong.append(f"{each.importer}: from {each.module} import {each.name}")
    return wrong


@cache
def faces_of(package: str) -> frozenset[str]:
    """The names of a package's face."""
    source = modules()[package].read_text("utf-8")
    bound = {alias.asname or alias.name for node in ast.parse(source).body for alias in getattr(node, "names", ())}
    return frozenset({*declared(source), *bound, *(getattr(node, "name", "") for node in ast.parse(source).body)})


def unit(name: str, floor: str) -> str | None:
    """The entry of `HOUSE` that a module belongs to."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == floor and parts[1] != "__main__" else None


def test_every_module_belongs_to_the_list() -> None:
    there = {(name.split(".")[0], unit(name, floor)) for name in modules() for floor in HOUSE if unit(name, floor)}
    assert there == {(floor, entry) for floor, entries in HOUSE.items() for entry in entries}


@pytest.mark.parametrize("floor", HOUSE)
def test_imports_go_down_the_list(floor: str) -> None:
    place = {entry: number for number, entry in enumerate(HOUSE[floor])}
    climbs = []
    for each in imports():
        above, below = unit(each.importer, floor), unit(home(each), floor)
        if above and below and place[below] < place[above]:
            climbs.append(f"{each.importer}: from {each.module} import {each.name}")
    assert not climbs


def test_no_script_imports_another() -> None:
    """What two of them need is in a package below."""
    scripts = {f"experiments.{name}" for name in SCRIPTS}
    assert not [each for each in imports() if each.importer in scripts and home(each) in scripts]


def test_nobody_reaches_past_a_package_s_face() -> None:
    assert not past_faces(imports())


def test_modules_go_in_no_circles() -> None:
    after: dict[str, set[str]] = {name: set() for name in modules()}
    for each in imports():
        if not is_package(each.importer) and (target := home(each)) != each.importer:
            after[each.importer].add(target)
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_no_package_has_more_modules_than_one_can_keep_in_mind() -> None:
    counts: dict[str, int] = {}
    for name in modules():
        outer = name.rpartition(".")[0]
        if not is_package(name) and outer and outer not in HOUSE:
            counts[outer] = counts.get(outer, 0) + 1
    assert not {package: count for package, count in counts.items() if count > MOST_MODULES}


def test_no_module_is_too_long() -> None:
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in modules().items()}
    assert not {name: count for name, count in lines.items() if count > MOST_LINES}


def test_faces_declare_at_run_time_what_type_checkers_read() -> None:
    for name, path in modules().items():
        source = path.read_text("utf-8")
        read = {
            alias.asname: str(node.module)
            for block in ast.parse(source).body
            if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
            for node in block.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert "load_when_used(__name__)" not in source or declared(source) == read, name


def test_an_import_past_a_face_is_seen() -> None:
    assert past_faces(tuple(imports_of("hpo.tuner", "from hpo.record.store import Store")))
    assert past_faces(tuple(imports_of("hpo.tuner", "def later():\n    from hpo.record import store")))
    assert not past_faces(tuple(imports_of("hpo.tuner", "from hpo.record import Store")))
    assert not past_faces(tuple(imports_of("hpo.record.writer", "from hpo.record.store import Store")))


@pytest.mark.parametrize("floor", HOUSE)
def test_the_architecture_page_has_the_table_of_each_floor(floor: str) -> None:
    """`make docs` writes it."""
    assert table(floor) in (ROOT / "docs" / "background" / "architecture.md").read_text(encoding="utf-8")
