"""Output of commands: tables for people, JSON for programs, errors on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import Any

from rich.console import Console, RenderableType

from hpo.text import plain, printer
from trainers.errors import ConfigurationError, DataError, RecordLostError, WarmbandError

UNKNOWN_WIDTH = 120
"""Columns of output to a file or a pipe, where COLUMNS does not say how many; --json has what tables shorten."""


class Terminal(Console):
    """A console that goes on in silence when whoever read its output is gone, as `head` is."""

    def on_broken_pipe(self) -> None:
        """Sends all further output nowhere."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def terminal(*, stderr: bool = False) -> Terminal:
    """Standard output, or standard error."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else UNKNOWN_WIDTH
    return Terminal(stderr=stderr, highlight=False, width=width)


@contextmanager
def errors_in_words() -> Iterator[None]:
    """An error of Warmband's that leaves the block ends the process, and is printed without a traceback.

    The exit code is 2 where what was asked for is wrong, else 1.
    """
    try:
        yield
    except WarmbandError as error:
        printer(terminal(stderr=True))(f"error: {error}", style="red")
        asked = isinstance(error, ConfigurationError | DataError) and not isinstance(error, RecordLostError)
        sys.exit(2 if asked else 1)


@contextmanager
def working(*, as_json: bool = False) -> Iterator[None]:
    """Where Ctrl-C in the block ends the command, and standard output is left to JSON where that is asked for."""
    try:
        # Whatever else prints, Ray for one, would stand in the way of the JSON.
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            yield
    except KeyboardInterrupt:
        sys.exit(130)


def show(*what: RenderableType) -> None:
    """Print for people: texts as `printer` does, and code without line breaks of ours, so that it can be copied."""
    out = terminal()
    for each in what:
        if isinstance(each, str):
            printer(out)(each)
        else:
            out.print(each, soft_wrap=bool(getattr(each, "no_wrap", False)))


def show_json(value: Any) -> None:
    """Prints for programs: times in ISO 8601, null for numbers that are not finite."""
    terminal().out(json.dumps(plain(value), indent=2), highlight=False)
