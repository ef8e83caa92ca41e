"""The wording of the messages that users see most often, as tests/unit/golden_messages.json has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.golden_messages import CASES, GROUPS, MOST, messages

FILE = Path(__file__).with_name("golden_messages.json")
REMEDY = f"python -m tests.support.golden_messages {FILE.relative_to(Path(__file__).parents[2])}"


def test_the_file_has_these_messages_and_few() -> None:
    assert list(json.loads(FILE.read_text(encoding="utf-8"))) == list(CASES), f"run {REMEDY}"
    assert len(CASES) <= MOST


@pytest.mark.parametrize("group", GROUPS)
def test_messages_are_worded_as_in_the_file(group: str) -> None:
    golden = json.loads(FILE.read_text(encoding="utf-8"))
    assert messages(group) == {name: text for name, text in golden.items() if name.startswith(f"{group}:")}, (
        f"after a change on purpose, run {REMEDY}"
    )
