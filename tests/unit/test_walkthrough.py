"""The notebook of the docs: it runs, finds what its text says, and is stored as it ran."""

from __future__ import annotations

from nbformat import NotebookNode

from tests.support.walkthrough import (
    ROOT,
    code,
    stored,  # noqa: F401  # A fixture.
)


def test_no_stored_output_has_an_error_or_a_path_of_a_machine(stored: NotebookNode) -> None:
    for cell in code(stored):
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output
            texts = [output.get("text", ""), *(v for k, v in output.get("data", {}).items() if k.startswith("text/"))]
            for place in ("/home/", "/root", "/tmp", "/work", str(ROOT)):
                assert not any(place in text for text in texts), cell.source
