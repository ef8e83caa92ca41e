"""What is changed about a job's gangs: sizes without one go first, and idle gangs make room, the longest idle first."""

from __future__ import annotations

import gc
import weakref

from trainers.gangs.planning import Programs


def test_what_a_size_without_gangs_ran_is_let_go_for_another_size() -> None:
    """Each holds a copy of all channels in the object store."""
    made: list[int] = []

    class Program:
        def __init__(self, workers: int) -> None:
            made.append(workers)

    programs = Programs(Program)
    two = programs.of(2, ())
    assert programs.of(2, ()) is programs.of(2, {2}) is two
    there = weakref.ref(two)
    del two
    three = programs.of(3, {2})
    assert there() is not None, "a gang of two is still there"
    assert programs.of(4, {3}) is not programs.of(3, {3, 4}) is three
    gc.collect()
    assert there() is None
    programs.of(2, {3, 4})
    assert made == [2, 3, 4, 2]
