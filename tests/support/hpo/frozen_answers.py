"""The kept answers of the eight jobs, and the check of a job's answer."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from tests.support import frozen
from tests.support.frozen import answer, is_exact, lines, made_on, nearly

FILE = Path(frozen.__file__).with_name("frozen_answers.json")
FROZEN = json.loads(FILE.read_text())


@pytest.fixture(scope="module")
def exact() -> bool:
    """Return whether the libraries and the processor permit a comparison of bytes."""
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
