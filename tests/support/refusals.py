"""Checks of error messages by their content: the field, the value and the remedy, in any order and any wording."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest

from trainers import WarmbandError

_ABSENT = object()

Names = str | tuple[str, ...]
"""One name that a text must contain, or several of which it must contain each."""


def missing_names(text: str, *names: object) -> list[str]:
    """Return the names that a text does not contain.

    A name counts only as a whole: `1` is not in "10", "1.5", "-1" or "1e-1", `eta` is not in "beta", and `--max-jobs`
    is not in "--max-jobs-per-hour". Upper and lower case, and any white space between two words, are the same.

    Args:
        text: a message or printed output.
        names: identifiers, numbers, quoted values or short terms. A string is looked for as it is or as `repr` escapes
            it; of another object, its `repr` or `str`, of a number also "100,000" and "1" for 1.0.

    Raises:
        ValueError: a name is empty.
    """
    text = " ".join(text.split())
    return [forms[0] for forms in map(_forms, names) if not any(_contains(text, form) for form in forms)]


def mentions(text: str, *names: object) -> str:
    """Fail unless a text contains each of these names, as `missing_names` looks for them.

    Returns:
        The text.
    """
    __tracebackhide__ = True
    if absent := missing_names(text, *names):
        pytest.fail(f"{absent} not in this text:\n{text}")
    return text


@contextmanager
def refuses(
    error: type[BaseException] | tuple[type[BaseException], ...] = WarmbandError,
    *,
    field: Names = (),
    value: object = _ABSENT,
    remedy: Names = (),
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """Expect an error that names the field, the value and the remedy, as `missing_names` looks for them.

    Args:
        error: the expected class or classes.
        field: what was given: an argument, a hyperparameter, a channel, a file.
        value: the refused value. A string may stand in the message with or without quotes.
        remedy: what the user can give or do instead: a valid value, another argument, a command.
    """
    __tracebackhide__ = True
    names = (*_several(field), *(() if value is _ABSENT else (value,)), *_several(remedy))
    if not names:
        raise ValueError("give the field, the value or the remedy that the error must name")
    with pytest.raises(error) as caught:
        yield caught
    mentions(str(caught.value), *names)


def refuses_each(
    cases: Iterable[tuple[Callable[[], object], tuple[object, ...]]],
    error: type[BaseException] | tuple[type[BaseException], ...] = WarmbandError,
) -> None:
    """Expect an error of each call, and report all calls that raise none or whose error lacks a name.

    Args:
        cases: a call, and the names of the field, the value and the remedy in its error.
        error: the expected class or classes.
    """
    __tracebackhide__ = True
    faults = []
    number = 0
    for number, (call, names) in enumerate(cases, 1):
        try:
            given = call()
        except error as refusal:
            if absent := missing_names(str(refusal), *names):
                faults.append(f"case {number}: {absent} not in: {refusal}")
        except KeyboardInterrupt:
            raise
        except BaseException as other:  # SystemExit and a skip would hide the other cases.
            faults.append(f"case {number}: {names}: {type(other).__name__} instead: {other}")
        else:
            faults.append(f"case {number}: {names}: no error, but {given!r}")
    assert number, "no case to try"
    if faults:
        pytest.fail("\n".join(faults))


def _several(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _forms(name: object) -> tuple[str, ...]:
    if isinstance(name, str):
        return tuple(dict.fromkeys((name, repr(name)[1:-1])))
    forms = [repr(name), str(name)]
    if isinstance(name, int | float) and not isinstance(name, bool):
        forms.append(f"{name:,}" if isinstance(name, int) else f"{name:g}")
    return tuple(dict.fromkeys(forms))


def _contains(text: str, name: str) -> bool:
    name = " ".join(name.split())
    if not name:
        raise ValueError("an empty name is in every text; give what the message must contain")
    before = after = ""
    if name[0].isdigit():  # No part of a longer number: digits, a decimal point, a sign or an exponent before it.
        before = r"(?<!\w)(?<!\d\.)(?:(?<!-)|(?<=\w-))(?<!\de[-+])"
        if re.match(r"\d{3}(?!\d)", name):
            before += r"(?<!\d,)"
    elif name[0] == "-":
        before = r"(?<![\w-])"
    elif re.match(r"\w", name):
        before = r"(?<!\w)"
    if re.search(r"\w$", name):
        after = r"(?![\w-])" if name.startswith("--") else r"(?!\w)"
    if name[-1].isdigit():
        after += r"(?!\.\d)(?!,\d{3}(?!\d))"
    return re.search(f"{before}{re.escape(name)}{after}", text, re.IGNORECASE) is not None
