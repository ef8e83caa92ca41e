"""Programs that are started again after a pause: each way to begin with each way to report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.trainers.script.restarts import ANEW, LOOKS, ON, PRINTS, REPORTS, check_values, train
from trainers.script.program import ScriptProgram


@pytest.mark.parametrize("report", [PRINTS, REPORTS])
@pytest.mark.parametrize("start", [ANEW, ON, LOOKS])
def test_each_unit_has_the_value_of_a_run_without_pauses(
    opened: Callable[..., ScriptProgram], tmp_path: Path, start: str, report: str
) -> None:
    check_values(opened(train(start, report)), tmp_path, goes_on=start == ON)
