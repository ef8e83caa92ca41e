"""Jobs that announce their end and their budget: by themselves, or by who ends them where their driver was killed."""

from __future__ import annotations

from pathlib import Path

from hpo import Prices, Webhook
from hpo.notices.announcer import announce
from hpo.record.store import Store
from tests.support.boosting import CHANNELS
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
