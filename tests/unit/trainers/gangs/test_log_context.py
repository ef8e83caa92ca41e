"""What a worker's log records say of job, gang and trial."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from trainers.gangs.worker.log_context import label_logs

GANG = "a-gang-of-mine-gang3-1a2b"


@pytest.fixture
def printed() -> Iterator[io.StringIO]:
    """What a root handler writes that shows every field, as Ray Train's does."""

    class Fields(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return json.dumps({name: getattr(record, name, None) for name in ("msg", "tuning_job", "gang", "trial")})

    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Fields())
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


def test_any_logger_s_records_name_job_gang_and_trial(printed: io.StringIO) -> None:
    labels = label_logs(GANG)
    logging.getLogger("user.code").warning("opening")
    labels.trial = "a-gang-of-mine-007"
    logging.getLogger("another").error("training")
    lines = [json.loads(line) for line in printed.getvalue().splitlines()]
    assert lines == [
        {"msg": "opening", "tuning_job": "a-gang-of-mine", "gang": GANG, "trial": None},
        {"msg": "training", "tuning_job": "a-gang-of-mine", "gang": GANG, "trial": "a-gang-of-mine-007"},
    ]


def test_fields_of_the_user_s_own_by_these_names_stay_theirs(printed: io.StringIO) -> None:
    label_logs(GANG).trial = "job-007"
    logging.getLogger("user.code").warning("mine", extra={"trial": 12, "gang": "of four"})
    found = json.loads(printed.getvalue())
    assert (found["trial"], found["gang"], found["tuning_job"]) == (12, "of four", "a-gang-of-mine")
