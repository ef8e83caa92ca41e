"""Job files mutated at random: each is a plan, or one of our own errors that names the key."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import example, given, settings, strategies as st

from hpo.strategies.hyperband import Plan
from tests.support import yaml_text
from tests.support.hpo.job_file.fuzz import FUZZ, JARGON, JOB, PATHS, SETS, check_words, outcome
from tests.support.properties import examples
from trainers.errors import WarmbandError

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 40),
    st.sampled_from([2**31, 2**53 + 1, 10**18, -(10**30), 10**400, 0, 1, -1]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([1e-320, 1e308, -0.0, 0.5, 1.0]),
    st.text(max_size=8),
    st.sampled_from(
        ["", "1", "true", "continuous", "Random", "Auto", "min", "\x1b[31m", "[bold]", "a/b", "é", "\ud800"]
    ),
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.one_of(st.text(max_size=5), st.sampled_from(["type", "min", "x"])), SCALARS, max_size=3),
    st.recursive(
        st.none(), lambda inner: st.lists(inner, max_size=2) | st.fixed_dictionaries({"x": inner}), max_leaves=9
    ),
    st.sampled_from([JOB["tuning"], JOB["tuning"]["ranges"]["eta"], JOB["data"]]),
)


@st.composite
def jobs(draw: st.DrawFn) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """A job file with up to three mutations, and the keys that they touched."""
    job, touched = copy.deepcopy(JOB), []
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(PATHS))
        group: Any = job
        try:
            for key in path[:-1]:
                group = group[key]
            last = path[-1]
            if isinstance(group, list) or draw(st.integers(0, 3)):
                group[last] = copy.deepcopy(draw(VALUES))
            elif draw(st.booleans()):
                del group[last]
            else:
                renamed = draw(st.sampled_from([f"{last}s", str(last)[:-1], "zzz", "", "max_jobs"]))
                group[renamed] = group.pop(last)
                touched.append((*path[:-1], renamed))
        except (AttributeError, KeyError, IndexError, TypeError):
            continue  # An earlier mutation took it away.
        touched.append(path)
    return job, touched


@FUZZ
@given(jobs())
@example((JOB, []))
def test_a_mutated_job_is_a_plan_or_an_error_that_names_the_key(mutated: tuple[dict[str, Any], list[Any]]) -> None:
    job, touched = mutated
    found = outcome(yaml_text.dump(job))
    if isinstance(found, Plan):
        assert found.trials == (job["tuning"].get("max_jobs") or 1)
        return
    assert touched, found
    check_words(found)
    # The error of one key names it; that of several keys at once, or of a missing one, their group.
    names = {part for path in touched for key in path[-2:] for part in (str(key), repr(key))}
    assert any(name in str(found) for name in names), (touched, found)


@settings(FUZZ, max_examples=examples(100))
@given(st.lists(st.text(max_size=20) | SETS, min_size=1, max_size=3))
@example(["UNION_TAG"])
def test_whatever_is_set(overrides: list[str]) -> None:
    found = outcome(yaml_text.dump(JOB), overrides)
    if isinstance(found, WarmbandError):
        if not JARGON.search(repr(overrides)):  # An error quotes what it was given.
            check_words(found)
        assert any(override.partition("=")[0].partition(".")[0] in str(found) for override in overrides), found
