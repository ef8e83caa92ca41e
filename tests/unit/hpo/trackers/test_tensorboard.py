"""What TensorBoard's own reader finds in the event files of a job."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams.api_pb2 import Status
from tensorboard.util.tensor_util import make_ndarray

from hpo.observers.callbacks import Callbacks
from hpo.search.trial import status_of
from hpo.trackers import TensorBoard
from tests.support.followed import (
    DIVERGING,
    FAILING,
    ODD,
    STATIC,
    best_configuration,
    follow,
    follow_repeats,
    start,
)
from tests.support.refusals import mentions, refuses
from tests.support.simulated import METRIC
from trainers.errors import ConfigurationError


def read(folder: Path) -> EventAccumulator:
    """A folder's events; one file holds them all."""
    assert len([file for file in folder.iterdir() if file.is_file()]) == 1
    return EventAccumulator(str(folder), tensor_size_guidance={"scalars": 0}).Reload()


def scalars(found: EventAccumulator, tag: str) -> list[tuple[int, float]]:
    return [(event.step, float(make_ndarray(event.tensor_proto))) for event in found.Tensors(tag)]


def same(one: list[tuple[int, float]], other: list[tuple[int, float]]) -> bool:
    near = [(step, pytest.approx(value, rel=1e-6, nan_ok=True)) for step, value in other]
    return one == near


def hparams(found: EventAccumulator, tag: str) -> Any:
    content = found.SummaryMetadata(tag).plugin_data.content
    if tag == metadata.SESSION_START_INFO_TAG:
        return metadata.parse_session_start_info_plugin_data(content)
    return metadata.parse_session_end_info_plugin_data(content)


def test_every_trial_has_a_folder_with_all_it_reported_and_how_it_ended(tmp_path: Path) -> None:
    controller, reported, said = follow(TensorBoard(tmp_path))
    assert not said
    assert sorted(each.name for each in (tmp_path / "job").iterdir() if each.is_dir()) == sorted(controller.runs)
    for name, run in controller.runs.items():
        found = read(tmp_path / "job" / name)
        for tag in (METRIC, ODD, "huge") if name != FAILING else ():
            assert same(scalars(found, tag), [(each.step, each.metrics[tag]) for each in reported[name]])
        values = {
            key: getattr(value, value.WhichOneof("kind"))
            for key, value in hparams(found, metadata.SESSION_START_INFO_TAG).hparams.items()
        }
        assert values == {**STATIC, "seed": "null", "monotone": "[1, 0]", "eta": run.hyperparameters["eta"]}
        failed = name in (FAILING, DIVERGING)
        assert hparams(found, metadata.SESSION_END_INFO_TAG).status == (
            Status.STATUS_FAILURE if failed else Status.STATUS_SUCCESS
        )
        [(step, billed)] = scalars(found, "trial/worker_seconds")
        assert step == run.resource
        assert billed == pytest.approx(controller.ledger.by_trial[name], rel=1e-6)
        assert status_of(run) in str(found.Tensors("trial/end")[0].tensor_proto.string_val[0])
        if not failed:
            assert same(scalars(found, "trial/objective"), [(run.resource, run.value)])
    assert any(math.isnan(value) for _, value in scalars(read(tmp_path / "job" / DIVERGING), METRIC))


def test_the_job_has_its_best_and_what_was_billed(tmp_path: Path) -> None:
    controller, _, _ = follow(TensorBoard(tmp_path))
    found = read(tmp_path / "job")
    best = controller.best()
    assert best is not None
    assert same(scalars(found, "job/best"), [(0, best.value)])
    assert same(scalars(found, "job/worker_seconds"), [(0, controller.ledger.total)])
    assert same(scalars(found, "job/cost"), [(0, 0.25)])
    [text] = found.Tensors("job/end")
    assert best.id in str(text.tensor_proto.string_val[0])


def test_the_best_of_a_job_with_repeats_is_the_mean_of_its_trials(tmp_path: Path) -> None:
    controller, said = follow_repeats(TensorBoard(tmp_path))
    assert not said
    objectives = {}
    for name in controller.runs:
        trial = read(tmp_path / "job" / name)
        if "trial/objective" in trial.Tags()["tensors"]:
            [(_, objectives[name])] = scalars(trial, "trial/objective")
    found = read(tmp_path / "job")
    for name, value in best_configuration(objectives).items():
        [(_, shown)] = scalars(found, f"job/{name}")
        assert shown == pytest.approx(value, abs=1e-6)  # It keeps seven digits.


def test_a_folder_that_has_the_job_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    _, _, said = follow(TensorBoard(tmp_path))
    assert len(said) == 1
    mentions(said[0], f"{tmp_path}/job", "TensorBoard")
    assert not list((tmp_path / "job").iterdir())


def test_a_folder_that_is_elsewhere_is_refused() -> None:
    with refuses(ConfigurationError, field="TensorBoard", value="gs://bucket/runs", remedy="local"):
        TensorBoard("gs://bucket/runs")


def test_the_same_tracker_serves_one_job_after_another(tmp_path: Path) -> None:
    tracker = TensorBoard(tmp_path)
    follow(tracker)
    Callbacks([tracker], pytest.fail).job_start(start(name="other"))
    assert tracker._outbox is not None
    tracker._outbox.close(60, 60)
    assert (tmp_path / "other").is_dir()
