"""Jobs that the service's own client creates: whole in the record or not there, and started again where left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hpo.record import Store
from tests.support.hpo.serve.aws.creating.jobs import Client, request
from tests.support.refusals import refuses


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"HyperParameters": {"objective": "binary:logistic", "num_rund": "3"}}, ("num_rund",)),
        (
            {"AlgorithmSpecification": {"TrainingImage": "other", "TrainingInputMode": "File"}},
            ("TrainingImage", "other", "--aws-tables"),
        ),
    ],
)
def test_a_request_that_does_not_go_leaves_no_job(
    client: Client, store: Store, tmp_path: Path, changed: dict[str, Any], names: tuple[str, ...]
) -> None:
    before = [job.name for job in store.jobs()]
    with refuses(ClientError, field=names) as refused:
        client().create_training_job(**request(tmp_path, **changed))
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert [job.name for job in store.jobs()] == before
