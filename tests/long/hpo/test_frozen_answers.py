"""The answers of eight jobs are those that were kept: no change of the code changes a trial, a rung or a winner.

Where the libraries and the processor are those that the file was made with, values and models are the same to the last
byte; elsewhere values are to 1e-6, and a warning says so. Where a change of the answers is meant, write the file again:
`python -m tests.support.frozen tests/support/frozen_answers.json`.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from tests.support import frozen
from tests.support.frozen import ON_RAY, answer, is_exact, lines, made_on, nearly

FILE = Path(frozen.__file__).with_name("frozen_answers.json")
FROZEN = json.loads(FILE.read_text())


@pytest.fixture(scope="module")
def exact() -> bool:
    """Whether bytes count."""
    if not (exact := is_exact(FROZEN["made_on"])):
        warnings.warn(
            f"{FILE.name}: made with {FROZEN['made_on']}, and here are {made_on()}: values are compared to 1e-6, and "
            "models are not",
            stacklevel=1,
        )
    return exact


def check(name: str, folder: Path, exact: bool) -> None:
    found, frozen = answer(name, folder), FROZEN["jobs"][name]
    assert lines(found if exact else nearly(found, frozen)) == lines(frozen)


@pytest.mark.parametrize("name", ON_RAY)
def test_on_gangs(name: str, tmp_path: Path, exact: bool, ray_cluster: None) -> None:
    check(name, tmp_path, exact)
