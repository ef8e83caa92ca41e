"""Layouts: their words, sizes and errors."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, strategies as st

from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError
from trainers.pytorch.layouts.layout import SCHEDULES, Layout

sizes = st.integers(1, 4)
layouts = st.builds(
    Layout, replicate=st.none() | sizes, shard=sizes, tensor=sizes, pipeline=sizes, schedule=st.sampled_from(SCHEDULES)
)


@given(layouts)
def test_a_layout_is_read_back_from_its_words(layout: Layout) -> None:
    assert Layout.parse(str(layout)) == layout == Layout.given(str(layout))


@given(layouts, st.integers(1, 64))
def test_sizes_multiply_to_the_workers_or_are_refused(layout: Layout, workers: int) -> None:
    inner = layout.shard * layout.together
    if workers == inner * (layout.replicate or workers // inner):
        on = layout.on(workers)
        assert on.replicate is not None
        assert on.replicate * inner == workers
        assert on.on(workers) == on
    else:
        with refuses(ConfigurationError, field="layout", value=workers, remedy="num_workers"):
            layout.on(workers)


def test_wrong_words_are_named() -> None:
    cases = [
        ("shards=2", ("layout", "shards=2", "shard")),
        ("shard=x", ("layout", "shard", "x", "1")),
        ("shard=0", ("layout", "shard", "0", "1")),
        ("shard=2 shard=2", ("layout", "shard=2")),
        ("shard 2", ("layout", "shard", "shard=2")),
        ("pipeline=2 schedule=GPipes", ("layout", "schedule", "GPipes", "GPipe", "1F1B")),
        ("micro_batches=4", ("layout", "micro_batches", "4", "pipeline=2")),
        ("pipeline=2 stages_per_worker=2", ("layout", "stages_per_worker", "2", "1F1B", "Interleaved1F1B")),
    ]
    refuses_each([(partial(Layout.parse, text), names) for text, names in cases], ConfigurationError)


@pytest.mark.parametrize("value", [2, {"shard": 2}, ("shard", 2)])
def test_what_is_no_layout_is_refused(value: object) -> None:
    with refuses(ConfigurationError, field="layout", value=value, remedy=("Layout", "shard=2")):
        Layout.given(value)


def test_hyperparameters_go_first() -> None:
    layout = Layout(shard=2)
    assert layout.under({}) is layout
    assert layout.under({"layout": "tensor=2"}) == Layout(tensor=2)
    pipeline = Layout(pipeline=2)
    assert pipeline.under({"micro_batches": 8, "schedule": "GPipe"}) == Layout(
        pipeline=2, micro_batches=8, schedule="GPipe"
    )


def test_fields_of_a_pipeline_may_be_tuned_beside_layouts_without_one() -> None:
    assert Layout().under({"layout": "shard=2", "micro_batches": 8}) == Layout(shard=2)


def test_a_number_of_replicas_that_does_not_fit_is_told_with_one_that_does() -> None:
    with refuses(ConfigurationError, field=("tensor=2", "2"), value=3, remedy="num_workers=4"):
        Layout(tensor=2).on(3)
    with refuses(ConfigurationError, field=("replicate=2", "shard=2", "4"), value=2, remedy="num_workers=4"):
        Layout(replicate=2, shard=2).on(2)
