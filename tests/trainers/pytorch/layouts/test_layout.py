"""Layouts: their words, sizes and errors."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

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
        with pytest.raises(ConfigurationError, match="num_workers="):
            layout.on(workers)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("shards=2", "'shards=2' is not understood.*did you mean 'shard'"),
        ("shard=x", "layout: shard is 'x'; give a whole number, 1 or more"),
        ("shard=0", "layout: shard is 0; give a whole number, 1 or more"),
        ("shard=2 shard=2", "once each"),
        ("shard 2", "'shard' is not understood"),
        ("pipeline=2 schedule=GPipes", "schedule is 'GPipes'.*did you mean 'GPipe'"),
        ("micro_batches=4", "micro_batches is 4, and there is no pipeline"),
        ("pipeline=2 stages_per_worker=2", "only Interleaved1F1B"),
    ],
)
def test_wrong_words_are_named(text: str, error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        Layout.parse(text)


@pytest.mark.parametrize("value", [2, {"shard": 2}, ("shard", 2)])
def test_what_is_no_layout_is_refused(value: object) -> None:
    with pytest.raises(ConfigurationError, match="give a Layout, or words"):
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
    with pytest.raises(ConfigurationError, match=r"layout 'tensor=2' takes a multiple of 2 workers.*num_workers=4"):
        Layout(tensor=2).on(3)
    with pytest.raises(ConfigurationError, match=r"takes 4 workers, and the gang has 2; give num_workers=4"):
        Layout(replicate=2, shard=2).on(2)
