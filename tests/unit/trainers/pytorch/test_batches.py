import math
from functools import partial

from hypothesis import given, strategies as st

from tests.support.refusals import refuses_each
from trainers.errors import ConfigurationError
from trainers.pytorch.data.batches import BatchSize, micro_batches
from trainers.pytorch.rates import LearningRateRule

SIZES = ("per_worker_batch_size", "global_batch_size")
sizes = st.lists(st.integers(1, 60), min_size=1, max_size=6)


def test_sizes_follow_from_each_other():
    whole = BatchSize.of({"global_batch_size": 96, "gradient_accumulation_steps": 3}, 4)
    assert whole == BatchSize.of({"per_worker_batch_size": 8, "gradient_accumulation_steps": 3}, 4)
    assert (whole.global_batch_size, whole.per_worker_batch_size) == (96, 8)
    assert BatchSize.of({"lr": 0.1}, 4) is None


def test_a_wrong_size_is_named():
    cases = [
        ({"global_batch_size": 100, "gradient_accumulation_steps": 3}, ("global_batch_size", 100, 4, 3, 12)),
        ({"global_batch_size": 3}, ("global_batch_size", 3, 4, 1)),
        ({"global_batch_size": 8, "per_worker_batch_size": 2}, ("global_batch_size", 8, "per_worker_batch_size", 2)),
        ({"per_worker_batch_size": 0}, ("per_worker_batch_size", 0, 1)),
        ({"per_worker_batch_size": 2.0}, ("per_worker_batch_size", 2.0, 1)),
        ({"per_worker_batch_size": 2, "gradient_accumulation_steps": True}, ("gradient_accumulation_steps", True, 1)),
    ]
    refuses_each([(partial(BatchSize.of, given, 4), names) for given, names in cases], ConfigurationError)


@given(rows=sizes, size=st.integers(1, 20), steps=st.integers(1, 4))
def test_drop_last_leaves_whole_updates(rows, size, steps):
    for rank in range(len(rows)):
        plan = micro_batches(rank, rows, size, steps, drop_last=True)
        assert all(micro.total_rows == size * steps * len(rows) for micro in plan)
        assert len(plan) == min(rows) // size // steps * steps


def test_the_ratio_is_of_an_updates_rows_to_those_that_the_rate_was_found_for():
    each, whole = (LearningRateRule.of({"learning_rate_rule": "linear", name: 24}) for name in SIZES)
    # An elastic gang goes on with fewer workers: their batch is smaller then, or is the same in larger parts.
    for workers in (4, 3):
        assert each.ratio(workers=workers, workers_an_update=workers, steps=2) == 2 * workers
        assert whole.ratio(workers=workers, workers_an_update=workers, steps=2) == 1
    assert each.ratio(workers=4, workers_an_update=1, steps=2) == 2
    assert whole.ratio(workers=4, workers_an_update=1, steps=2) == 0.25
    assert [whole.factor(0.25, epochs) for epochs in (0, 9)] == [0.25, 0.25]


def test_the_linear_rule_warms_up_as_in_goyal_et_al():
    rule = LearningRateRule.of({"learning_rate_rule": "linear", "warmup_epochs": 5})
    assert [rule.factor(8, epochs) for epochs in (0, 2.5, 5, 90)] == [1.0, 4.5, 8.0, 8.0]
    assert LearningRateRule.of({"learning_rate_rule": "sqrt"}).factor(16, 0) == 4.0
    assert LearningRateRule.of({"warmup_epochs": 5}).factor(16, 1) == 1.0


def test_a_wrong_rule_is_named():
    cases = [
        ({"learning_rate_rule": "lineer"}, ("learning_rate_rule", "lineer", "none", "linear", "sqrt")),
        ({"learning_rate_rule": None}, ("learning_rate_rule", None, "linear", "sqrt")),
        ({"warmup_epochs": -1}, ("warmup_epochs", -1, 0)),
        ({"warmup_epochs": math.nan}, ("warmup_epochs", math.nan, 0)),
    ]
    refuses_each([(partial(LearningRateRule.of, given), names) for given, names in cases], ConfigurationError)
