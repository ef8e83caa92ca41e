"""The answers of eight jobs are those that were kept: no change of the code changes a trial, a rung or a winner.

Where the libraries and the processor are those that the file was made with, values and models are the same to the last
byte; elsewhere values are to 1e-6, and a warning says so. Where a change of the answers is meant, write the file again:
`python -m tests.support.frozen tests/support/frozen_answers.json`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.frozen import ON_RAY
from tests.support.hpo.frozen_answers import (
    check,
    exact,  # noqa: F401  # A fixture.
)


@pytest.mark.parametrize("name", ON_RAY)
def test_on_gangs(name: str, tmp_path: Path, exact: bool, ray_cluster: None) -> None:
    check(name, tmp_path, exact)
