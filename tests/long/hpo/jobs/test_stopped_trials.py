"""Trials that a person stops: obeyed at the next report, and decided the same way again wherever the driver died."""

from __future__ import annotations

from pathlib import Path

from tests.support.hpo.jobs.stopped_trials import check_end_in_the_middle, check_end_of_time


def test_one_that_trains_on_a_gang_ends_in_the_middle(ray_cluster: None, tmp_path: Path) -> None:
    check_end_in_the_middle(tmp_path, workers=2)


def test_one_on_a_gang_whose_time_is_over_ends_and_so_does_the_untuned_run(ray_cluster: None, tmp_path: Path) -> None:
    check_end_of_time(tmp_path, workers=2)
