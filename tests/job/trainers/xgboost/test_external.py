"""External memory: rows on disk are learnt from as rows in memory are, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.external_rows import order, program
from tests.support.process_gang import serve_alone
from tests.support.trainers.xgboost.external import KINDS, of_kind, rows_of
from trainers import storage
from trainers.gangs.in_process import alone
from trainers.gangs.messages import Segment

pytestmark = pytest.mark.usefixtures("scratch")


def test_pages_are_on_disk_for_the_last_two_values_of_max_bin_and_rows_once(folder: Path, scratch: Path) -> None:
    served = program(folder)()
    served.open(alone(1))
    rows = {path: path.stat().st_mtime_ns for path in scratch.rglob("*.npy")}
    assert len(rows) == 10, "of the rows to train on; those to score are XGBoost's alone by now"
    for max_bin in (16, 32, 64, 16):
        served.train(order(folder, max_bin=max_bin), lambda report: None)
        assert len(list(scratch.rglob("*.gradient_index.page"))) <= 2
    assert {path: path.stat().st_mtime_ns for path in scratch.rglob("*.npy")} == rows
    served.close()
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_categories_queries_and_sparse_rows_come_from_disk_too(folder: Path, scratch: Path, kind: str) -> None:
    opened = {part: rows_of(kind, folder, part) for part in ("train", "validation")}
    found = {}
    for external in (False, True):
        program = of_kind(kind, opened, external=external)()
        [segment] = serve_alone(program, order(folder, **KINDS[kind]))
        assert isinstance(segment, Segment), segment
        found[external] = segment.reports, storage.read(segment.checkpoint)
    assert found[True] == found[False]
    assert not list(scratch.iterdir())
