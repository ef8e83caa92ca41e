"""What is common to the scripts of experiments/: how they end where what they were asked for is wrong."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import pytest

import experiments
from docs import house
from tests.support.refusals import mentions

FOLDER = Path(experiments.__file__).parent
APART = ("results_page",)
"""It has errors of its own, which it says in the same way."""


def ends(module: Path) -> list[str]:
    """What a module does where it is run as a script."""
    tests = (node for node in ast.parse(module.read_text()).body if isinstance(node, ast.If))
    return [
        "\n".join(map(ast.unparse, node.body)) for node in tests if ast.unparse(node.test) == "__name__ == '__main__'"
    ]


SCRIPTS = {module.stem: end for module in sorted(FOLDER.glob("*.py")) for end in ends(module)}


def test_a_module_on_top_is_run_and_one_below_is_not() -> None:
    assert SCRIPTS.keys() == {*house.SCRIPTS}


@pytest.mark.parametrize("name", sorted(SCRIPTS.keys() - set(APART)))
def test_errors_of_every_script_are_said_in_words(name: str) -> None:
    assert SCRIPTS[name].startswith("with errors_in_words():\n"), SCRIPTS[name]


@pytest.mark.parametrize(
    ("name", "argument", "named"),
    [
        ("why_it_broke", "nothing.yaml", ("nothing.yaml",)),
        ("store_rate", "postgresql+psycopg://me:secret@127.0.0.1:1/none", ("me:***@127.0.0.1:1/none",)),
        ("store_rate", "nothing", ("URL", "WARMBAND_STORE")),
    ],
)
def test_a_mistake_in_its_arguments_is_one_line(
    name: str,
    argument: str,
    named: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [name, argument, "--out", str(tmp_path / "out")])
    monkeypatch.delitem(sys.modules, f"experiments.{name}", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"experiments.{name}", run_name="__main__")
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1, said
    assert said[0].startswith("error: ")
    mentions(said[0], *named)
