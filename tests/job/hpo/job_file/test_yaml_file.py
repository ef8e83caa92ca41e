"""Job files as YAML 1.2: values, the places where they stand, and what cannot be read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from hpo.job_file.yaml_file import read
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job.yaml"


TENFOLD = "a: &a [1]\n" + "".join(f"{two}: &{two} [{', '.join(['*' + one] * 10)}]\n" for one, two in pairwise("abcdef"))


@pytest.mark.parametrize("text", ["a: &x [*x, *x]", TENFOLD])
def test_aliases_do_not_grow_without_end(path: Path, text: str) -> None:
    path.write_text(text)
    with refuses(ConfigurationError, field=("job.yaml", "aliases"), value=10000):
        read(path)
