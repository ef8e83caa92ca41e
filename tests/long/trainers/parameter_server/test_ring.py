"""Decentralised averaging: nothing is lost between neighbours, and after a pass all hold the mean."""

from __future__ import annotations

from typing import Any

from ray.train import ScalingConfig

from tests.support.networks import assignment, data, train_adam
from tests.support.process_gang import process_gang
from trainers import ParameterServerTrainer
from trainers.channels import Channel


def fails_or_not(context: Any) -> None:
    if context.rank == 1 and context.hyperparameters.get("fail"):
        given = context.prepare_data

        def failing(*args: Any, **named: Any) -> Any:
            for number, batch in enumerate(given(*args, **named)):
                if number == 2:
                    raise ValueError("on the way")
                yield batch

        context.prepare_data = failing
    train_adam(context)


def test_a_gang_goes_on_after_a_trial_that_failed_on_one_worker(tmp_path: Any) -> None:
    words = {"mode": "ring", "per_worker_batch_size": 8}

    def make() -> Any:
        trainer = ParameterServerTrainer(
            fails_or_not, scaling=ScalingConfig(num_workers=3), hyperparameters=words, report_timeout_s=60.0
        )
        return trainer.program({"train": Channel.of(data(96), name="train").place(3)})

    trials = [
        assignment(tmp_path, name=name, **words, **more)
        for name, more in (("first", {}), ("failed", {"fail": 1}), ("last", {}))
    ]
    with process_gang(3, str(tmp_path)) as gang:
        answers = gang.run(make, *trials)
    for first, failed, last in answers:
        assert "rank 1" in str(failed) or "on the way" in str(failed), failed
        assert [segment.reports[-1].step for segment in (first, last)] == [2, 2]
        assert first.reports[-1].metrics["train:x"] == answers[0][0].reports[-1].metrics["train:x"]
    assert answers[0][2].details["communication"]["steps"] == {"0": 8, "1": 8, "2": 8}
    assert min(answers[0][2].details["communication"]["bytes"].values()) > 0
