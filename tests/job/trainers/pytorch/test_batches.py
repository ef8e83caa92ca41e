import math

from hypothesis import given, strategies as st

from trainers.pytorch.data.batches import micro_batches

sizes = st.lists(st.integers(1, 60), min_size=1, max_size=6)


@given(rows=sizes, size=st.integers(1, 20), steps=st.integers(1, 4))
def test_every_row_is_in_a_pass_once_and_weighs_alike(rows, size, steps):
    plans = [micro_batches(rank, rows, size, steps) for rank in range(len(rows))]
    assert len({len(plan) for plan in plans}) == 1
    for rank, plan in enumerate(plans):
        assert sum(micro.rows for micro in plan) == rows[rank]
        assert all(micro.rows <= size for micro in plan)
        assert plan[-1].last
    updates: dict[int, list] = {}
    number = 0
    for parts in zip(*plans, strict=True):
        updates.setdefault(number, []).extend(parts)
        assert len({part.last for part in parts}) == len({part.total_rows for part in parts}) == 1
        number += parts[0].last
    for parts in updates.values():
        total = parts[0].total_rows
        assert sum(part.rows for part in parts) == total > 0
        assert math.isclose(sum(part.rows / part.total_rows for part in parts), 1.0)
    assert sum(parts[0].total_rows for parts in updates.values()) == sum(rows)
