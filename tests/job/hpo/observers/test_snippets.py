"""Configurations as YAML and Python: what is pasted is what was printed."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings, strategies as st

from hpo.observers.snippets import as_python, as_yaml
from hpo.yaml_core import load
from tests.support.properties import examples

VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.booleans(), st.none(), st.text(max_size=30)
)


@settings(max_examples=examples(50))
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.one_of(VALUES, st.lists(VALUES, max_size=3))))
@example(
    {"a": "1e5", "b": "+.5e3", "c": "0o17", "d": "2026-01-31", "e": "yes", "f": "-.inf", "g": "~", "h": ["1", 1e-5]}
)
def test_values_come_back_as_they_were(values: dict[str, Any]) -> None:
    configuration = {"trainer": "dict", "scaling": {}, "hyperparameters": values}
    pasted = load(as_yaml(configuration, indent="  "))["hyperparameters"]
    assert pasted == values
    assert [type(value) for value in pasted.values()] == [type(value) for value in values.values()]
    names: dict[str, Any] = {}
    exec(as_python(configuration).replace(", dict\n", "\n"), names)
    assert names["trainer"]["hyperparameters"] == values
