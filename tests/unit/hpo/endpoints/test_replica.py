"""A replica of a model with text labels answers with the labels."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from starlette.requests import Request

from hpo.endpoints.replica import Replica
from hpo.endpoints.scoring import BoosterScorer
from trainers.xgboost.booster import note_preparation

DAYS = [19753.0, 19783] * 30
ROWS = [{"since": "2024-01-31", "active": True}, {"active": False, "since": "2024-03-01"}]


def replica() -> Replica:
    rows = pd.DataFrame({"since": np.array(DAYS), "active": [1.0, 0] * 30})
    model = xgboost.train({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(rows, [1, 0] * 30), 5)
    note_preparation(model, {"target": "y", "classes": ["no", "yes"], "dates": ["since"]})
    return Replica(BoosterScorer(raw=bytes(model.save_raw("ubj"))), {})


def answer(rows: Any, **headers: str) -> tuple[int, str]:
    """Status and body of the answer to a request with rows in JSON."""
    body = json.dumps({"instances": rows}).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/churn/invocations",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    response = asyncio.run(replica()(Request(scope, receive)))
    return response.status_code, bytes(response.body).decode()


def test_labels_and_probabilities_are_answered() -> None:
    status, body = answer(ROWS)
    found = json.loads(body)
    assert (status, found["predictions"]) == (200, ["yes", "no"])
    for label, of_each in zip(found["predictions"], found["probabilities"], strict=True):
        assert max(of_each, key=of_each.get) == label
        assert sum(of_each.values()) == pytest.approx(1)


def test_csv_has_a_label_and_the_probabilities_in_a_line() -> None:
    status, body = answer(ROWS, accept="text/csv")
    assert status == 200
    assert [line.split(",")[0] for line in body.splitlines()] == ["yes", "no"]


def test_a_value_that_is_no_date_is_refused() -> None:
    status, body = answer([{"since": "soon", "active": True}])
    assert status == 400
    assert "'soon'" in json.loads(body)["error"]
