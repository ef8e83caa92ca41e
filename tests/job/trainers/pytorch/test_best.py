"""The model of a trial whose job compares trials by their best value is that of its best report."""

from __future__ import annotations

import pytest

from tests.support.networks import assignment, servers, state
from tests.support.refusals import refuses
from tests.support.trainers.pytorch.best import VALUES, by_best, handed_out, in_one_process, train, words
from trainers import TrialError


def on_servers(*assignments) -> list:
    return servers(train, *assignments)


@pytest.mark.parametrize("serve", [in_one_process, on_servers])
@pytest.mark.parametrize(("mode", "best"), [("max", 1), ("min", 2)])
@pytest.mark.parametrize("pauses", [(), (1,), (2, 4)])
def test_the_best_epoch_s_state_is_handed_out_whatever_the_pauses(tmp_path, serve, mode, best, pauses) -> None:
    told = words(3 if serve is on_servers else 0)
    ends = [*pauses, len(VALUES)]
    parts = [
        by_best(assignment(tmp_path, start=start, stop=stop, **told), mode)
        for start, stop in zip([0, *pauses], ends, strict=True)
    ]
    segment = serve(*parts)[-1]
    model = handed_out(segment)
    assert int(model["nested"][0]) == best
    [alone] = serve(assignment(tmp_path, name="short", stop=best + 1, **told))
    assert str(model["model"]) == str(state(alone)["model"])
    assert int(state(segment)["nested"][0]) == len(VALUES) - 1  # It goes on from its last.


def test_without_a_checkpoint_in_each_report_the_remedy_is_said(tmp_path) -> None:
    with refuses(
        TrialError, field=("epoch 1", "checkpoint", "objective_value"), value="best", remedy=("report", "last")
    ):
        in_one_process(by_best(assignment(tmp_path, stop=3, **words(without=[1]))))
