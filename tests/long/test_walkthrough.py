"""The notebook of the docs: it runs, finds what its text says, and is stored as it ran."""

from __future__ import annotations

import json
from collections.abc import Iterator

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode, v4

from tests.support.walkthrough import (
    ROOT,
    code,
    stored,  # noqa: F401  # A fixture.
)

FOUND = """
import json
print(json.dumps([*table[METRIC][:3], same, table["epochs"].iloc[2] / table["epochs"].iloc[3]]))
"""
"""A last cell: what the text speaks of."""


@pytest.fixture(scope="module")
def executed(stored: NotebookNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookNode]:
    """The notebook, run anew in a home of its own."""
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARMBAND_HOME", str(folder / "home"))
        patch.delenv("WARMBAND_STORE", raising=False)
        patch.setenv("PYTHONPATH", str(ROOT))
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(folder / name))
        notebook = v4.new_notebook(cells=[*stored.cells, v4.new_code_cell(FOUND)], metadata=stored.metadata)
        resources = {"metadata": {"path": str(folder)}}
        yield NotebookClient(nbformat.from_dict(notebook), timeout=240, resources=resources).execute()


def kinds(cell: NotebookNode) -> list[tuple[str, ...]]:
    """What a cell gave out, without its figures."""
    return [(output.output_type, output.get("name", ""), *sorted(output.get("data", {}))) for output in cell.outputs]


def test_it_finds_what_its_text_says(executed: NotebookNode) -> None:
    one, four, tuned, same, share = json.loads(code(executed)[-1].outputs[0].text)
    assert four < 0.2, "chance is 0.1: the network learns nothing"
    assert one > 0.9, "one worker learns"
    assert tuned > four + 0.7, "tuned for its workers it learns again"
    assert tuned > one - 0.03, "as well as on one worker"
    assert same, "random search has the same configurations"
    assert 0.4 < share < 0.6, "Hyperband trains about half the epochs"


def test_its_stored_outputs_are_those_of_one_whole_run(stored: NotebookNode, executed: NotebookNode) -> None:
    ran = code(executed)[:-1]
    assert [cell.execution_count for cell in code(stored)] == [cell.execution_count for cell in ran]
    assert [kinds(cell) for cell in code(stored)] == [kinds(cell) for cell in ran]
    assert [cell.source.splitlines()[0] for cell in code(stored) if not cell.outputs] == ["%%capture --no-stdout"]
