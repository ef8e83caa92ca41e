"""The decisions of Hyperband: laws, on hundreds of layouts, and the plain rule beside them."""

from __future__ import annotations

import math
import random
from typing import Any

from hypothesis import given, settings, strategies as st

from hpo.strategies.hyperband import Hyperband, Plan, State, lay_out
from tests.support.hpo.strategies.hyperband.halving import layouts, play
from tests.support.properties import examples


@settings(max_examples=examples(200), deadline=None)
@given(layouts, st.integers(0, 2**32), st.lists(st.integers(1, 16), min_size=2, max_size=3))
def test_decisions_do_not_depend_on_how_many_run_at_once(layout, seed: int, parallels: list[int]) -> None:
    plan = lay_out(min(layout[0], 40), *layout[1:])

    def curve(trial: str, step: int) -> float:
        return random.Random(f"{seed}{trial}{step}").random()

    outcomes = [play(plan, curve, seed + parallel, parallel)[1] for parallel in parallels]
    assert all(outcome == outcomes[0] for outcome in outcomes)


class Reference:
    """The rule written down plainly: at each call it looks at all trials of a bracket, and counts nothing."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.trials: list[dict[str, Any]] = []
        self.closed = False
        self.cuts: list[tuple[int, int, list[str], list[str]]] = []

    def members(self, index: int, state: State | None = None) -> list[dict[str, Any]]:
        of = [trial for trial in self.trials if trial["bracket"] == index]
        return [trial for trial in of if state is None or trial["state"] is state]

    def find(self, name: str) -> dict[str, Any]:
        return next(trial for trial in self.trials if trial["name"] == name)

    def add(self, name: str) -> int:
        room = [
            index for index, bracket in enumerate(self.plan.brackets) if len(self.members(index)) < bracket.sizes[0]
        ]
        self.trials.append({"name": name, "bracket": room[0], "rung": 0, "state": State.TRAINING, "value": math.nan})
        return room[0]

    def milestone(self, name: str) -> int:
        trial = self.find(name)
        return self.plan.brackets[trial["bracket"]].rungs[trial["rung"]]

    def runnable(self) -> list[str]:
        training = [
            (trial["bracket"], -trial["rung"], number, trial["name"])
            for number, trial in enumerate(self.trials)
            if trial["state"] is State.TRAINING
        ]
        return [name for *_, name in sorted(training)]

    def report(self, name: str, resource: int, value: float) -> set[str]:
        trial = self.find(name)
        if trial["state"] is not State.TRAINING or resource < self.milestone(name):
            return set()
        if self.milestone(name) == self.plan.max_resource:
            return self.leave(name, State.FINISHED) | {name}
        trial["state"], trial["value"] = State.WAITING, value
        return self.cut(trial["bracket"])

    def leave(self, name: str, state: State) -> set[str]:
        trial = self.find(name)
        if trial["state"] not in (State.TRAINING, State.WAITING):
            return set()
        trial["state"] = state
        return self.cut(trial["bracket"])

    def close(self) -> set[str]:
        self.closed = True
        return set().union(*(self.cut(index) for index in range(len(self.plan.brackets))))

    def cut(self, index: int) -> set[str]:
        bracket, waiting = self.plan.brackets[index], self.members(index, State.WAITING)
        full = self.closed or len(self.members(index)) == bracket.sizes[0]
        if self.members(index, State.TRAINING) or not full or not waiting:
            return set()
        rung = waiting[0]["rung"]
        finite = [trial for trial in waiting if math.isfinite(trial["value"])]
        others = [trial for trial in waiting if not math.isfinite(trial["value"])]
        best = sorted(finite, key=lambda trial: -trial["value"])  # Stable: ties stay in the order of addition.
        went_on = best[: bracket.sizes[rung + 1]]
        stopped = best[len(went_on) :] + others
        for trial in went_on:
            trial["state"], trial["rung"] = State.TRAINING, rung + 1
        for trial in stopped:
            trial["state"] = State.STOPPED
        names = [[trial["name"] for trial in group] for group in (went_on, stopped)]
        self.cuts.append((index, bracket.rungs[rung], *names))
        return {trial["name"] for trial in waiting}


@settings(max_examples=examples(300), deadline=None)
@given(layouts, st.integers(0, 2**32))
def test_it_decides_as_the_plain_rule_does(layout: tuple[int, int, int, int], seed: int) -> None:
    """Adding, reporting, failing, ending and running dry, in any order and also where it changes nothing."""
    draw = random.Random(seed)
    plan = lay_out(min(layout[0], 40), *layout[1:])
    fast, plain = Hyperband(plan, maximize=True), Reference(plan)
    names: list[str] = []
    for _ in range(6 * plan.trials + 20):
        action = draw.random()
        if action < 0.35 and len(names) < plan.trials and not plain.closed:
            names.append(f"t{len(names):03d}")
            assert fast.add(names[-1]) == plain.add(names[-1])
        elif action < 0.9 and names:
            name = draw.choice(plain.runnable() or names)
            resource = plain.milestone(name) + draw.choice([-1, 0, 0, 0, 1])
            value = draw.choice([draw.random(), draw.random(), 0.5, math.nan, -math.inf])
            assert fast.report(name, resource, value) == plain.report(name, resource, value)
        elif action < 0.94 and names:
            name = draw.choice(names)
            assert fast.fail(name) == plain.leave(name, State.FAILED)
        elif action < 0.98 and names:
            name = draw.choice(names)
            assert fast.finish(name) == plain.leave(name, State.FINISHED)
        elif action > 0.995 or len(names) == plan.trials:
            assert fast.close() == plain.close()
        assert list(fast.runnable()) == plain.runnable()
        assert [fast.state(name) for name in names] == [trial["state"] for trial in plain.trials]
        assert [fast.milestone(name) for name in names] == [plain.milestone(name) for name in names]
    assert [(c.bracket, c.resource, [*c.went_on], [*c.stopped]) for c in fast.cuts] == plain.cuts
