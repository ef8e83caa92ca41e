"""The files of docker/, read for the tests that hold them against the code, and the commands that stand in them."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tests.support import yaml_text

ROOT = Path(__file__).resolve().parents[3]
DOCKER = ROOT / "docker"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pinned(package: str) -> str:
    """The version of a package in constraints.txt."""
    found = re.search(rf"^{package}==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert found, package
    return found[1]


def read(name: str) -> Any:
    """A YAML file of docker/, its anchors and merges resolved."""
    return yaml_text.load((DOCKER / name).read_text())


def files() -> list[Path]:
    """Return the files of docker/, except for dashboards and secrets."""
    kinds = (".gpu", ".sh", ".yaml", "")
    return [
        path for path in DOCKER.rglob("*") if path.is_file() and path.suffix in kinds and "secrets" not in path.parts
    ]


def every(value: Any) -> Iterator[tuple[str, Any]]:
    """Every key of a tree with its value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key), inner
            yield from every(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from every(inner)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every `hpo` and `ray` command in docker/ and docs/guides/deploying.md, by file, without variables before it."""
    files = [
        path for path in DOCKER.rglob("*") if path.suffix in (".yaml", ".sh") or path.name.startswith("Dockerfile")
    ]
    for path in [*files, ROOT / "docs" / "guides" / "deploying.md"]:
        text = re.sub(r"\s*>-\n", " ", path.read_text())
        text = re.sub(r"\n\s{4,}(--\w)", r" \1", text)  # Folded lines of YAML.
        text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text).replace("\\\n", " ")
        for line in re.split(r"\n|;|&&", text):
            found = re.search(r"^[#\s$-]*(?:[\w.-]+:\s+)?(?:[A-Z_]+=\S+\s+)*((?:hpo|ray) [a-z].*)$", line)
            if found:
                yield str(path.relative_to(ROOT)), shlex.split(found[1], comments=True)


def resolve(program: Any, words: list[str]) -> None:
    """Parses a command line as the program would, and runs nothing."""
    name, *rest = words
    while hasattr(program, "resolve_command"):
        assert rest, f"{name} needs a command"
        inner, command, behind = program.resolve_command(click.Context(program), list(rest))
        program, name, rest = command, f"{name} {inner}", behind
    program.make_context(name, list(rest), resilient_parsing=False)
