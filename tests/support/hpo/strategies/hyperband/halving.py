"""Simulated Hyperband searches."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from hpo.strategies.hyperband import Hyperband, Plan

layouts = st.tuples(st.integers(1, 160), st.integers(1, 5), st.integers(1, 100), st.sampled_from([2, 3, 4])).filter(
    lambda layout: layout[1] <= layout[2]
)


def play(plan: Plan, curve, seed: int, parallel: int = 1, fail=lambda trial: None) -> tuple[Hyperband, dict[str, int]]:
    """Runs a plan with `parallel` trials at once, ending in random order; returns the units each trial used."""
    order = random.Random(seed)
    core = Hyperband(plan, maximize=True)
    used: dict[str, int] = {}
    running: dict[str, int] = {}
    while True:
        while len(running) < parallel:
            ready = [trial for trial in core.runnable() if trial not in running]
            if ready:
                trial = ready[0]
            elif len(used) < plan.trials:
                trial = f"t{len(used):03d}"
                core.add(trial)
                used[trial] = 0
            else:
                break
            running[trial] = core.milestone(trial)
        if not running:
            return core, used
        trial = order.choice(sorted(running))
        target = running.pop(trial)
        dies_at = fail(trial)
        if dies_at is not None and dies_at <= target:
            used[trial] = dies_at
            core.fail(trial)
            continue
        for step in range(used[trial] + 1, target + 1):
            core.report(trial, step, curve(trial, step))
        used[trial] = target
