"""A search whose decisions follow from the order of results decides again as it did, wherever it was broken off."""

from __future__ import annotations

import logging
from functools import partial

import pytest

from hpo.strategies.hyperband import Plan, lay_out
from tests.support.broken_off import Service, answer, ends_as
from tests.support.hpo.jobs.turns import Digests, searched
from tests.support.refusals import mentions, missing_names


def test_a_record_without_turns_is_told_in_any_order() -> None:
    service = Service(plan=lay_out(9, 1, 9), parallel=3)
    expected = answer(service, service.drive())
    again = Service(plan=lay_out(9, 1, 9), parallel=3)
    again.drive(dies_at=12)
    again.options = {"in_order": True}
    ends_as(again, expected)


def test_a_strategy_that_does_not_decide_as_it_did_says_so_and_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    service, _ = searched(parallel=2)
    service.drive(dies_at=20)
    known = {name: row for name, row in service.rows.trials.items() if row.resource}
    service.scheduler = partial(Unlike, service)
    with caplog.at_level(logging.WARNING):
        controller = service.drive()
    (warned,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    mentions(warned, "strategy")
    assert any(not missing_names(warned, name) for name in service.rows.trials)
    assert controller is not None
    assert {name: controller.runs[name].hyperparameters for name in known} == {
        name: row.hyperparameters for name, row in known.items()
    }
    trained = {(each.trial_id, step) for each in service.served for step in range(each.start + 1, each.stop + 1)}
    assert trained == {*service.rows.reports}


class Unlike(Digests):
    """Decides otherwise from some moment on."""

    def __init__(self, service: Service, plan: Plan) -> None:
        super().__init__()
        self.log.append("unlike")
