"""Imports only point down, nothing private of Ray's is used, and every module says what it is."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ABOVE = "trainers/script/module/warmband/command.py"
"""A module of `warmband`, an installed package of its own above the floors; jobs put its folder on programs' path."""
FORBIDDEN = {
    "trainers": {"hpo", "experiments", "tests"},
    "hpo": {"experiments", "tests"},
    "experiments": {"tests"},
}


def modules(*floors: str) -> dict[str, ast.Module]:
    """The modules of the floors, by their paths."""
    return {
        str(path.relative_to(ROOT)): parsed(path) for floor in floors for path in sorted((ROOT / floor).rglob("*.py"))
    }


@cache
def parsed(path: Path) -> ast.Module:
    """A module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Every absolute import anywhere in a module: the name it binds, and the dotted name of what it brings."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for name in names:
                    top = name.name.partition(".")[0]
                    yield (name.asname, name.name) if name.asname else (top, top)
                    yield "", name.name
            case ast.ImportFrom(module=module, names=names, level=0):
                for name in names:
                    yield name.asname or name.name, f"{module}.{name.name}"
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield "", module


def climbs(tree: ast.Module, floor: str) -> set[str]:
    """What a module of `floor` imports from above it."""
    return {name for _, name in imports(tree) if name.partition(".")[0] in FORBIDDEN[floor]}


def private(tree: ast.Module) -> set[str]:
    """What a module imports, or reads as an attribute of an import, that is private to Ray."""
    bound = dict(imports(tree))
    names = {name for _, name in imports(tree)}
    for node in ast.walk(tree):
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if attributes and isinstance(node, ast.Name) and node.id in bound:
            names.add(".".join([bound[node.id], *attributes]))
    return {name for name in names if re.match(r"ray\.(.*\.)?_(?!_)", name)}


@pytest.mark.parametrize("floor", FORBIDDEN)
def test_each_floor_is_where_these_tests_look(floor):
    assert modules(floor)


@pytest.mark.parametrize("floor", FORBIDDEN)
def test_imports_only_point_down(floor):
    found = {path: climbs(tree, floor) for path, tree in modules(floor).items() if path != ABOVE}
    assert not {path: names for path, names in found.items() if names}


ADAPTERS = {"trainers/cluster/train_run.py", "trainers/ray_train/answers.py"}
"""Each says which version of Ray it was tested with, and has a test that fails where another one differs."""


def test_only_public_interfaces_of_ray_are_used_but_for_two_adapters():
    found = {path: private(tree) for path, tree in modules("trainers", "hpo").items()}
    assert {path for path, names in found.items() if names} == ADAPTERS


def test_the_first_line_of_a_module_is_one_sentence():
    """It says what the module is."""
    first = {path: (ast.get_docstring(tree) or "").partition("\n")[0] for path, tree in modules(*FORBIDDEN).items()}
    assert not {path: line for path, line in first.items() if not line.endswith(".")}
    assert not {path: line for path, line in first.items() if re.search(r"[.!?]\s+[A-Z]", line)}


@pytest.mark.parametrize(
    "source",
    [
        "import hpo",
        "import numpy, hpo.record.store as store",
        "from hpo import store",
        "def later():\n    from experiments.bank import main",
        "import importlib\nimportlib.import_module('hpo.record.store')",
        "import tests.doubles",
    ],
)
def test_an_import_that_points_up_is_seen(source):
    assert climbs(ast.parse(source), "trainers")


def test_an_import_that_points_down_is_allowed():
    assert not climbs(ast.parse("import hpo_tools\nfrom trainers import gang\nfrom hpo.cost import Ledger"), "hpo")


@pytest.mark.parametrize(
    "source",
    [
        "import ray._private.services",
        "from ray import _raylet",
        "from ray._private.utils import get_system_memory",
        "import ray.train.v2._internal.state as state",
        "from ray.train._internal import session",
        "import ray\nray._private.worker.global_worker",
        "import ray.train as train\ntrain._internal",
        "from ray import tune as t\nt.execution._helper()",
    ],
)
def test_a_private_name_of_ray_is_seen(source):
    assert private(ast.parse(source))


def test_a_public_name_of_ray_is_allowed():
    source = "import ray\nimport xgboost_ray\nray.__version__\nray.get(x)\nself._private\nxgboost_ray.main._start"
    assert not private(ast.parse(source))


def hidden(tree: ast.Module) -> set[str]:
    """The underscore names of other modules that a module uses."""
    taken = {name.rpartition(".")[2] for _, name in imports(tree)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=attribute):
                taken.add(attribute)
    return {name for name in taken if re.match("_(?!_)", name)}


def test_experiments_use_what_users_have():
    """They are read as examples."""
    found = {path: hidden(tree) for path, tree in modules("experiments").items()}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize("source", ["from hpo.record import _open", "import hpo\nhpo.store._open()", "run()._hidden"])
def test_an_underscore_name_of_another_module_is_seen(source):
    assert hidden(ast.parse(source))


def test_names_of_its_own_and_pythons_are_allowed():
    assert not hidden(ast.parse("from hpo import store\nself._own = cls._made\nstore.__name__"))
