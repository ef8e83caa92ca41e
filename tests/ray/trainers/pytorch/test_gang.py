"""PyTorch gangs on a real Ray cluster: parameter servers that die, workers that die, and the same bits in the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ray.train import ScalingConfig

from tests.support.networks import assignment, close, servers, state, train_adam
from tests.support.refusals import refuses
from tests.support.trainers.pytorch.gang import WORDS, Pool, pool, straight  # noqa: F401  # Fixtures.
from trainers import ResourcesError
from trainers.gangs.capacity import check_capacity
from trainers.gangs.messages import Progress, Served


def test_a_gang_that_is_halted_goes_on_to_the_same_bits(pool: Pool, tmp_path: Path) -> None:
    words = {**WORDS, "seconds": 0.1}
    long = assignment(tmp_path, stop=500, name="halted", **words)
    pool.gangs.assign(pool.up.gang, long)
    pool.until(lambda event: isinstance(event, Progress))
    pool.gangs.halt(pool.up.gang)
    served = pool.until(lambda event: isinstance(event, Served))
    assert isinstance(served, Served)
    assert served.segment, served.traceback
    reached = served.segment.reached
    assert reached < long.stop
    rest = replace(long, start=reached, stop=reached + 1, checkpoint=served.segment.checkpoint)
    segment = pool.serve(rest).segment
    assert segment
    [straight] = servers(train_adam, assignment(tmp_path, stop=reached + 1, name="straight", num_workers=2, **WORDS))
    assert served.segment.reports + segment.reports == straight.reports
    close(state(segment)["model"], state(straight)["model"], 0.0)


def test_a_gpu_that_no_node_has_is_refused_with_what_to_do(ray_cluster: None) -> None:
    with refuses(ResourcesError, field=("2", "workers", "1 GPU"), value="0 GPU", remedy=("1 node", "use_gpu=False")):
        check_capacity(ScalingConfig(num_workers=2, use_gpu=True))
