"""What is changed about a job's gangs: sizes without one go first, and idle gangs make room, the longest idle first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given, settings, strategies as st

from trainers.gangs.planning import Release, Start, next_change


def change(
    sizes: Mapping[int, int],
    held: Mapping[str, int] | None = None,
    idle: Sequence[str] = (),
    *,
    room: int = 8,
    worth_another: bool = True,
) -> Start | Release | None:
    gangs = dict(held or {})

    def fits(workers: int, returned: Sequence[str]) -> bool:
        return sum(size for gang, size in gangs.items() if gang not in returned) + workers <= room

    return next_change(sizes, gangs, idle, worth_another=worth_another, fits=fits)


def test_a_first_gang_is_started_whatever_it_is_worth() -> None:
    assert change({3: 2}, worth_another=False) == Start(workers=3)
    assert change({3: 2}, {"a": 2}, worth_another=False) == Start(workers=3)
    assert change({}) is None


def test_a_further_one_is_started_where_it_is_worth_it_and_fits() -> None:
    assert change({3: 2}, {"a": 3}) == Start(workers=3)
    assert change({3: 2}, {"a": 3}, worth_another=False) is None
    assert change({3: 2}, {"a": 3}, room=5) is None
    assert change({3: 2}, {"a": 3, "b": 3}) is None


def test_the_most_urgent_size_comes_first() -> None:
    assert change({4: 1, 2: 3}, {"a": 2}) == Start(workers=4)
    assert change({2: 3, 4: 1}, {"a": 2}) == Start(workers=2)


def test_the_gang_that_was_idle_longest_goes_for_a_size_that_has_none() -> None:
    held = {"a": 2, "b": 2, "c": 4}
    assert change({4: 1, 3: 1}, held, ["b", "a"]) == Release(gang="b")
    assert change({3: 1}, held, []) is None


def test_nothing_goes_for_a_further_gang_of_a_size_or_where_it_would_not_help() -> None:
    assert change({2: 3, 4: 1}, {"a": 2, "b": 2, "c": 4}, ["c"]) is None
    assert change({8: 1}, {"a": 2, "b": 4}, ["a"]) is None


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(1, 5), st.integers(1, 4), max_size=4),
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=5),
    st.booleans(),
    st.integers(5, 20),
)
def test_changes_come_to_an_end_within_the_room(
    sizes: dict[int, int], gangs: list[tuple[int, bool]], worth_another: bool, room: int
) -> None:
    """Carried out one after the other, with idle gangs enough, every size that is wanted gets a gang."""
    held = {f"gang{number}": workers for number, (workers, _) in enumerate(gangs)}
    while sum(held.values()) > room:
        held.popitem()
    idle = [name for name in held if gangs[int(name[4:])][1]]
    busy = sum(held.values()) - sum(held[name] for name in idle)
    for number in range(100):
        todo = change(sizes, held, idle, room=room, worth_another=worth_another)
        if todo is None:
            break
        if isinstance(todo, Start):
            held[f"new{number}"] = todo.workers
        else:
            assert todo.gang == idle.pop(0)
            del held[todo.gang]
        assert sum(held.values()) <= room
    else:
        raise AssertionError("it never ends")
    for workers in sizes:
        new = sum(size for name, size in held.items() if name.startswith("new"))
        assert workers in held.values() or busy + new + workers > room
