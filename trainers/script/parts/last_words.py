"""The last lines of a program that failed, and the one of them that says why."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = 20
"""Lines in an error's message."""
_EPILOGUES = ("torch/distributed/elastic/multiprocessing/", "torch.distributed.elastic.", "accelerate.commands.launch")
"""Where launchers begin to say, at length, that a process failed, which had said itself why."""


def last_words(lines: Iterable[str]) -> list[str]:
    """The last lines of a program itself; those of its launcher where it printed none."""
    whole = [line for line in lines if line.strip()]
    own = list(whole)
    for number, line in enumerate(whole):
        if any(sign in line for sign in _EPILOGUES):
            own = whole[:number]
            break
    if own and own[-1].startswith("Traceback"):  # The launcher's own.
        own.pop()
    return (own or whole)[-SHOWN:]


def reason(lines: Iterable[str]) -> str:
    """The line of them that says most: the last with an exception's name in front, or the last; empty for none."""
    stripped = [line.strip() for line in lines]
    errors = [line for line in stripped if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (errors or stripped or [""])[-1]
