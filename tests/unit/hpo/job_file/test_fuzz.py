"""Job files mutated at random: each is a plan, or one of our own errors that names the key."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from hpo.strategies.hyperband import Plan
from tests.support import yaml_text
from tests.support.hpo.job_file.fuzz import FUZZ, JARGON, JOB, PATHS, check_words, outcome
from tests.support.properties import examples
from tests.support.refusals import mentions
from trainers.errors import WarmbandError


@settings(FUZZ, max_examples=examples(100))
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
