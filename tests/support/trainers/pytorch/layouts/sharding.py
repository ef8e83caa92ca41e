"""A gang that trains in sharded layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ray.train import ScalingConfig

from tests.support.process_gang import ProcessGang, process_gang
from trainers import TorchTrainer
from trainers.gangs.messages import Segment

WORDS = {"global_batch_size": 8, "clip": 0.5}


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessGang]:
    with process_gang(4, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def program(function: Any, layout: str = "", channels: Callable[[], Any] = dict, **options: Any) -> Any:
    """Makes the program of a trainer, on whichever process asks."""

    def make() -> Any:
        from trainers import Layout

        words = {"scaling": ScalingConfig(num_workers=0), "report_timeout_s": 60.0, **options}
        trainer = TorchTrainer(function, **words)
        trainer.layout = Layout.parse(layout)
        return trainer.program(channels())

    return make


def ended(answers: list[Any]) -> list[Segment]:
    """Rank 0's segments, where every rank's assignments came to one."""
    for answer in answers:
        for each in answer:
            if isinstance(each, Exception):
                raise each
    return list(answers[0])
