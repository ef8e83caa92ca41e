"""What segments of one trial tell, added up."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

from trainers.gangs.messages import merged

COUNTS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9))


def test_numbers_add_dicts_merge_and_the_rest_is_replaced() -> None:
    first: dict[str, Any] = {"bytes": 10, "staleness": {"0": 3, "2": 1}, "mode": "async", "delayed": True, "gone": [1]}
    second = {"bytes": 5.5, "staleness": {"2": 4, "3": 1}, "mode": "sync", "delayed": True, "new": None}
    assert merged(first, second) == {
        "bytes": 15.5,
        "staleness": {"0": 3, "2": 5, "3": 1},
        "mode": "sync",
        "delayed": True,
        "gone": [1],
        "new": None,
    }
    assert merged({"x": 1}, {"x": {"y": 1}}) == {"x": {"y": 1}}
    assert first["staleness"] == {"0": 3, "2": 1}


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("xyz"), COUNTS | st.none(), max_size=3), max_size=4))
def test_a_first_segment_is_added_to_nothing(segments: list[dict[str, Any]]) -> None:
    """However many segments a trial has: the first of them begins with nothing, and totals are those of a counter."""
    total: dict[str, Any] = {}
    for each in segments:
        total = merged(total, each)
    for name in "xyz":
        counts = [each[name] for each in segments if isinstance(each.get(name), dict)]
        if all(isinstance(each.get(name, {}), dict) for each in segments):
            for key in "abc":
                assert total.get(name, {}).get(key, 0) == sum(count.get(key, 0) for count in counts)
