"""Job files mutated at random: each is a plan, or one of our own errors that names the key."""

from __future__ import annotations

import copy
import re
import tempfile
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from hpo import HyperparameterTuner
from hpo.job_file.reading import read_job
from hpo.strategies.hyperband import Plan
from tests.support import yaml_text
from tests.support.refusals import mentions
from trainers.errors import WarmbandError

JOB = {
    "name": "small",
    "data": {"channels": {"train": {"path": "train.csv", "target": "y"}, "validation": {"path": ["a.csv", "b.csv"]}}},
    "trainer": {
        "type": "xgboost",
        "num_workers": 2,
        "use_gpu": False,
        "resources_per_worker": {"CPU": 1},
        "accelerator_type": None,
        "label_selector": {"zone": "in(a, b)"},
        "hyperparameters": {"eval_metric": "auc", "num_round": 9},
    },
    "tuning": {
        "objective_metric_name": "validation:auc",
        "objective_type": "Maximize",
        "objective_value": "last",
        "strategy": "Hyperband",
        "hyperband": {"max_resource": 9, "min_resource": 1, "reduction_factor": 3},
        "max_jobs": 4,
        "max_parallel_jobs": 1,
        "max_runtime_in_seconds": 60,
        "random_seed": 1,
        "ranges": {
            "eta": {"type": "continuous", "min": 0.001, "max": 1, "scaling": "Logarithmic"},
            "max_depth": {"type": "integer", "min": 1, "max": 10},
            "updater": {"type": "categorical", "values": ["gbtree", 1, 1.5, True, None]},
        },
    },
    "storage_path": "/somewhere",
    "store": None,
}

# What must not reach a user: the words of the libraries underneath.
JARGON = re.compile(
    r"pydantic|Traceback|union_tag|discriminator|tagged|Input should|validation error|constructor", re.I
)


def paths(value: Any, under: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where every value of the job is."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in items for found in ((*under, key), *paths(item, (*under, key)))]


PATHS = paths(JOB)
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


def outcome(text: str | bytes, overrides: Sequence[str] = ()) -> Plan | WarmbandError:
    """The plan that a job file is for, or the error that it ends in; anything else raised fails the test."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode(errors="replace") if isinstance(text, str) else text)
        file.flush()
        try:
            return HyperparameterTuner(**read_job(file.name, overrides).arguments()).plan()
        except WarmbandError as error:
            return error


def check_words(error: WarmbandError) -> None:
    assert not JARGON.search(str(error)), error


FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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


@settings(FUZZ, max_examples=100)
@given(st.one_of(st.text(), st.binary(), st.text(alphabet="ab:-[]{}&*!|>'\"#%@,?\n \t0.1~e<")))
@example("a: &a [*a]")
@example("? {x: 1}\n: 2")
@example("!!set {a, b}")
@example("a: !!timestamp x")
@example("a: 2026-13-45")
@example("<<: {a: 1}")
@example("\ufeffname: x")
def test_whatever_the_text_is(text: str | bytes) -> None:
    found = outcome(text)
    assert isinstance(found, WarmbandError)
    if not JARGON.search(repr(text)):
        check_words(found)


SETS = st.builds("{}={}".format, st.sampled_from([".".join(map(str, path)) for path in PATHS]), st.text(max_size=9))


@settings(FUZZ, max_examples=100)
@given(st.lists(st.text(max_size=20) | SETS, min_size=1, max_size=3))
@example(["UNION_TAG"])
def test_whatever_is_set(overrides: list[str]) -> None:
    found = outcome(yaml_text.dump(JOB), overrides)
    if isinstance(found, WarmbandError):
        if not JARGON.search(repr(overrides)):  # An error quotes what it was given.
            check_words(found)
        assert any(override.partition("=")[0].partition(".")[0] in str(found) for override in overrides), found


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ".".join(map(str, path)))
def test_each_key_left_out_or_renamed(path: tuple[Any, ...]) -> None:
    job = copy.deepcopy(JOB)
    group: Any = job
    for key in path[:-1]:
        group = group[key]
    value = group.pop(path[-1])
    found = outcome(yaml_text.dump(job))
    assert isinstance(found, Plan) or any(str(key) in str(found) for key in path[-2:])
    free = ("ranges", "channels", "hyperparameters", "resources_per_worker", "label_selector")
    if isinstance(group, dict) and path[-1] != "type" and (len(path) < 2 or path[-2] not in free):
        group["zz_zz"] = value
        mentions(str(outcome(yaml_text.dump(job))), "zz_zz")
