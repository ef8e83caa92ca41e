"""The walkthrough notebook and its code cells."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "background" / "walkthrough.ipynb"


@pytest.fixture(scope="module")
def stored() -> NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]
