"""A temporary folder of the test's own."""

from __future__ import annotations

import tempfile

import pytest


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return the folder for temporary folders."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path
