"""Jobs that announce their end and their budget: by themselves, or by who ends them where their driver was killed."""

from __future__ import annotations

from pathlib import Path

from hpo import Webhook
from hpo.jobs.launch.background import end_abandoned
from hpo.notices.announcer import announce
from hpo.record.store import Store
from tests.support.noticed import ended_job
from tests.support.receivers import Hook
from tests.support.refusals import mentions
from tests.support.trainings import url


def lines(record: str, name: str = "job") -> list[str]:
    with Store(record) as store:
        return [line.text for line in store.lines(name) if "webhook, 127.0.0.1" in line.text]


def test_what_could_not_be_sent_stands_in_the_lines_and_is_sent_by_who_looks_next(
    receiver: Hook, tmp_path: Path
) -> None:
    receiver.answers = [404, 200]
    with Store(url(tmp_path)) as store:
        ended_job(store, {"ops": Webhook(url=receiver.url)}, status="Stopped")
        announce(store, "job")
        [line] = lines(url(tmp_path))
        mentions(line, "stopped", "ops", 404)
        assert not end_abandoned(store, "job")
    receiver.wait_for(2)
    assert receiver.posted[0].body == receiver.posted[1].body


def test_a_job_that_goes_on_and_ends_again_says_so_again(receiver: Hook, tmp_path: Path) -> None:
    with Store(url(tmp_path)) as store:
        ended_job(store, {"ops": Webhook(url=receiver.url)}, status="Stopped")
        announce(store, "job")
        store.update_job("job", status="InProgress", ended_at=None)
        announce(store, "job")
        store.update_job("job", status="Completed", ended_at=1_700_000_100.0)
        announce(store, "job")
        announce(store, "job")
    assert receiver.events() == ["stopped", "ended"]
    assert len({posted.content["id"] for posted in receiver.posted}) == 2


def test_a_record_that_is_away_raises_nothing(receiver: Hook, tmp_path: Path) -> None:
    said: list[str] = []
    with Store(url(tmp_path)) as store:
        ended_job(store, {"ops": Webhook(url=receiver.url)})
        announce(store, "another", said.append)
    assert len(said) == 1
    assert said[0].startswith("warning: ")
    mentions(said[0], "notices", "another")
