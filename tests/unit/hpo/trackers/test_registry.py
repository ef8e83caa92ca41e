"""The best model of a job in MLflow's registry: what it came from, what it predicts, and that there is one of it."""

from __future__ import annotations

from hpo.trackers.registry import register
from tests.support.hpo.trackers.registry import LINEAGE
from tests.support.refusals import refuses
from trainers.errors import WarmbandError


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with refuses(WarmbandError, field="churn", value="127.0.0.1:9", remedy="registry") as caught:
        register(dict, LINEAGE, "churn", "http://me:secret@127.0.0.1:9")
    assert "secret" not in str(caught.value)
