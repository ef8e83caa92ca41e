"""What the published experiments share: steps are done once, and two runs do not share a folder."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from experiments.shared.published import Options, Steps
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError


def silent(text: str) -> None:
    """Nobody listens."""


def test_a_step_is_done_once(tmp_path: Path) -> None:
    done = []

    def work() -> dict[str, object]:
        done.append(1)
        return {"scores": (0.5, math.nan), "name": "a"}

    for _ in range(2):
        with Steps(tmp_path, silent) as steps:
            result = steps.do("train", {"seed": 1}, work)
            assert result["scores"][0] == 0.5
            assert math.isnan(result["scores"][1])
    assert len(done) == 1


def test_other_settings_do_it_again(tmp_path: Path) -> None:
    with Steps(tmp_path, silent) as steps:
        assert steps.do("train", {"seed": 1}, lambda: 1) == 1
        assert steps.do("train", {"seed": 2}, lambda: 2) == 2
        assert steps.do("train", {"seed": 2}, lambda: 3) == 2


@pytest.mark.parametrize("left", ["", "{", '{"settings": {"seed": 1}}', "[1]"])
def test_a_step_that_was_cut_short_is_done_again(tmp_path: Path, left: str) -> None:
    with Steps(tmp_path, silent) as steps:
        steps.do("train", {"seed": 1}, lambda: 1)
        (tmp_path / "steps" / "train.json").write_text(left)
        assert steps.do("train", {"seed": 1}, lambda: 2) == 2


def test_what_steps_need_is_made_ready_for_the_first_that_is_not_done(tmp_path: Path) -> None:
    ready = []
    for made in (1, 1, 2):
        with Steps(tmp_path, silent) as steps:
            steps.before = lambda: ready.append(1)
            steps.do("train", {}, lambda: 1)
            if made == 2:
                steps.do("more", {}, lambda: 1)
                steps.do("and more", {}, lambda: 1)
        assert len(ready) == made


def test_a_step_that_raises_leaves_nothing(tmp_path: Path) -> None:
    def work() -> int:
        raise KeyboardInterrupt

    with Steps(tmp_path, silent) as steps:
        with pytest.raises(KeyboardInterrupt):
            steps.do("train", {}, work)
        assert steps.do("train", {}, lambda: 1) == 1


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with Steps(tmp_path, silent), refuses(ConfigurationError, value=str(tmp_path), remedy="--out"):
        Steps(tmp_path, silent)
    with Steps(tmp_path, silent) as steps:
        assert steps.do("train", {}, lambda: 1) == 1
    assert json.loads((tmp_path / "steps" / "train.json").read_text()) == {"settings": {}, "result": 1}


def test_seeds_rise_from_the_first(tmp_path: Path) -> None:
    assert [*Options(seed=3, seeds=2, out=tmp_path).each_seed] == [3, 4]
