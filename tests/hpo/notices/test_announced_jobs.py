"""Jobs that announce their end and their budget: by themselves, or by who ends them where their driver was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpo import Prices, Webhook
from hpo.jobs.launch.background import end_abandoned
from hpo.notices import announcer
from hpo.notices.announcer import announce
from hpo.record.store import Store
from tests.support.boosting import CHANNELS
from tests.support.noticed import ended_job
from tests.support.processes import ROOT
from tests.support.receivers import Hook
from tests.support.refusals import mentions, refuses
from tests.support.trainings import boosted, training, url
from trainers.errors import WarmbandError


def lines(record: str, name: str = "job") -> list[str]:
    with Store(record) as store:
        return [line.text for line in store.lines(name) if "webhook, 127.0.0.1" in line.text]


def test_a_job_that_has_ended_says_so_once(receiver: Hook, tmp_path: Path) -> None:
    job = training(
        tmp_path, notices={"ops": Webhook(url=receiver.url), "failures": Webhook(url=receiver.url, events=["failed"])}
    )
    job.fit(CHANNELS, job_name="job")
    with Store(url(tmp_path)) as store:
        announce(store, "job")
        row = store.job("job")
    [posted] = receiver.posted
    assert posted.content["event"] == "ended"
    assert (posted.content["status"], posted.content["kind"]) == ("Completed", "training")
    [line] = lines(url(tmp_path))
    mentions(line, "ended", "ops")
    assert row.spec["notices"]["failures"]["events"] == ["failed"]


def test_a_job_that_fails_says_so_and_fails_as_without(receiver: Hook, tmp_path: Path) -> None:
    receiver.answers = [500, 200]
    trainer = boosted(objective="reg:squarederror", eval_metric="rmse", eta=1e38)
    hooks = {"ops": Webhook(url=receiver.url)}
    job = training(tmp_path, trainer, objective_metric_name="validation:rmse", notices=hooks)
    with refuses(WarmbandError, field="diverged"):
        job.fit(CHANNELS, job_name="job")
    assert receiver.events() == ["failed", "failed"]
    assert receiver.posted[0].content == receiver.posted[1].content
    assert receiver.posted[0].content["reason"]


def test_a_share_of_the_budget_is_said_once_over_resumes(receiver: Hook, tmp_path: Path) -> None:
    prices = Prices(per_cpu_hour=3600.0)
    hook = Webhook(url=receiver.url, events=["budget", "stopped"], budget_share=0.5)
    job = training(tmp_path, boosted(num_round=4000), prices=prices, max_cost=0.5, notices={"ops": hook})
    job.fit(CHANNELS, job_name="job")
    assert sorted(receiver.events()) == ["budget", "stopped"]
    [budget] = [posted.content for posted in receiver.posted if posted.content["event"] == "budget"]
    assert budget["budget"]["limit"] == "max_cost"
    assert budget["budget"]["most"] == 0.5
    assert budget["budget"]["share"] >= 0.5
    job.resume()
    assert sorted(receiver.events()) == ["budget", "stopped", "stopped"]
    assert len({posted.content["id"] for posted in receiver.posted}) == 3


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


def driver(record: str, hook: str, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.noticed", record, hook, how],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.process
@pytest.mark.fault
def test_a_killed_drivers_job_is_announced_by_who_ends_it(receiver: Hook, database: str) -> None:
    killed = driver(database, receiver.url, "killed")
    said, _ = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL, said
    assert not receiver.posted
    with Store(database) as store:
        assert end_abandoned(store, "job")
    [posted] = receiver.wait_for(1)
    assert (posted.content["event"], posted.content["status"]) == ("stopped", "Stopped")
    mentions(posted.content["reason"], "driver")


@pytest.mark.process
@pytest.mark.fault
def test_a_driver_that_is_killed_as_it_announces_is_made_up_for_with_the_same_id(receiver: Hook, database: str) -> None:
    killed = driver(database, receiver.url, "trains")
    receiver.before = lambda number: killed.kill() if number == 1 else None
    said, _ = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL, said
    with Store(database) as store:
        assert store.job("job").status == "Completed"
        assert not lines(database)
        assert not end_abandoned(store, "job")
    first, second = receiver.wait_for(2)
    assert first.content == second.content
    deadline = time.monotonic() + announcer.DEADLINE
    while not lines(database):
        assert time.monotonic() < deadline, "no line says that the notice was sent"
        time.sleep(0.05)
