"""Every deletion of files is in one module, and each caller of what deletes a whole folder is known."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = "trainers/deletion.py"
DELETES = {
    *("rmtree", "unlink", "rmdir", "removedirs", "delete_dir", "delete_dir_contents", "delete_root_dir_contents"),
    *("delete_file", "TemporaryDirectory", "NamedTemporaryFile", "SpooledTemporaryFile", "rmdirs"),
}
"""Names of functions and methods that delete files or folders, of Python's library and of pyarrow."""

OF_OS = {"remove"}
"""Functions of the module `os` that delete. Lists and sets have methods of that name."""

WHOLE = {
    "delete_scratch": {"trainers/process/scratch.py", "trainers/script/program.py"},
    "delete_abandoned_scratch": {"trainers/process/scratch.py"},
    "delete_given": {"trainers/ray_train/trial.py"},
}
"""Functions that delete a folder with all in it which they have not made, with the modules that may call them."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("hpo", "trainers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))


def deletions(tree: ast.Module) -> Iterator[str]:
    """Yield each name in a module that deletes files or folders, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            of = node.value.id if isinstance(node.value, ast.Name) else ""
            if (node.attr in DELETES and of != "deletion") or (node.attr in OF_OS and of == "os"):
                yield f"{node.attr} in line {node.lineno}"
        elif isinstance(node, ast.ImportFrom) and node.module != "trainers.deletion":
            named = {alias.name for alias in node.names}
            if found := named & (DELETES | (OF_OS if node.module == "os" else set())):
                yield f"{', '.join(sorted(found))} in line {node.lineno}"
        elif isinstance(node, ast.List) and any(
            isinstance(each, ast.Constant) and each.value in ("rm", "rmdir", "unlink") for each in node.elts[:1]
        ):
            yield f"the command {ast.unparse(node.elts[0])} in line {node.lineno}"


def test_one_module_deletes() -> None:
    found = {path: list(deletions(tree)) for path, tree in sources()}
    assert found.pop(MODULE), "the scan finds what deletes"
    assert {path: each for path, each in found.items() if each} == {}, f"delete through {MODULE}"


def test_who_deletes_whole_folders_is_known() -> None:
    callers: dict[str, set[str]] = {name: set() for name in WHOLE}
    for path, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "trainers.deletion":
                for alias in node.names:
                    if alias.name in WHOLE:
                        callers[alias.name].add(path)
    assert callers == WHOLE


@pytest.mark.parametrize(
    "text",
    [
        "import shutil\nshutil.rmtree(folder)",
        "from shutil import rmtree as away\naway(folder)",
        "Path(name).unlink(missing_ok=True)",
        "os.remove(name)",
        "from os import remove\nremove(name)",
        "filesystem.delete_dir(path)",
        "with tempfile.TemporaryDirectory() as folder:\n    pass",
        "subprocess.run(['rm', '-r', folder])",
        "act = os.rmdir",
    ],
)
def test_the_scan_sees(text: str) -> None:
    assert list(deletions(ast.parse(text)))
    assert not list(deletions(ast.parse("names.remove(name)\ndeletion.delete_file(path)\nstorage.delete(uri)")))
