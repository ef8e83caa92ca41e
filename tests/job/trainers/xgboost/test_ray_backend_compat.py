"""Both sides of the adapter are what it was written for: these fail when xgboost_ray, XGBoost or Ray changes."""

from __future__ import annotations

import ast
import hashlib
import inspect
from pathlib import Path
from typing import Any

import pytest

from tests.support.trainers.xgboost.ray_backend_compat import READ
from trainers.xgboost.ray_backend import compat as compat

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize("thing", READ, ids=lambda thing: thing.__name__)
def test_what_the_backend_rests_on_in_xgboost_ray_is_as_it_was_read(thing: Any) -> None:
    found = hashlib.sha256(inspect.getsource(thing).encode()).hexdigest()[:16]
    assert found == READ[thing], f"read {thing.__module__}.{thing.__name__} again, then renew its fingerprint"


def modules() -> list[Path]:
    return [path for floor in ("trainers", "hpo") for path in sorted((ROOT / floor).rglob("*.py"))]


def test_only_two_modules_import_xgboost_ray_and_only_the_adapter_its_private_names() -> None:
    importers, private = set(), set()
    for path in modules():
        bound: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name.name}" for name in node.names]
            ours = [name for name in names if name.split(".")[0] == "xgboost_ray"]
            if ours:
                importers.add(path.name)
                bound |= {name.split(".")[-1] for name in ours} | {"xgboost_ray"}
                private |= {path.name for name in ours if any(part.startswith("_") for part in name.split("."))}
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                base = node.value
                while isinstance(base, ast.Attribute):
                    base = base.value
                if isinstance(base, ast.Name) and base.id in bound:
                    private.add(path.name)
    assert importers == {"compat.py", "training.py"}
    assert private == {"compat.py"}
