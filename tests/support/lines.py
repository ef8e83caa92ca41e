"""Lines of printed output or of a page, found by what they name."""

from __future__ import annotations

import pytest

from tests.support.refusals import missing_names


def line_with(text: str, *names: object) -> str:
    """Return the first line that has all of these names, as `missing_names` looks for them; fail where none has."""
    for line in text.splitlines():
        if not missing_names(line, *names):
            return line
    pytest.fail(f"no line has all of {names}:\n{text}")
