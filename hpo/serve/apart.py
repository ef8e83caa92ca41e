"""Processes of their own that create jobs for the server, ask and answer in JSON, and go on when the server dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any

from hpo.record import ACTS_AS, Actor
from hpo.serve.errors import RefusedError

SECONDS = 180.0
"""Within which a process has to have done what it was asked for."""

LATE_SECONDS = 10.0
"""That the server waits beyond: for one that ends itself then."""


async def ask(module: str, given: Mapping[str, Any], who: Actor) -> Any:
    """Has a process of its own do something, and returns its answer.

    Args:
        module: is run, and calls `answer`.
        given: what is to be done.
        who: asks for it.

    Raises:
        RefusedError: it has not answered in time, and goes on or has ended itself; or it ended without an answer.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, ACTS_AS: who.to_text()},
    )
    try:
        async with asyncio.timeout(SECONDS + LATE_SECONDS):
            out, _ = await process.communicate(json.dumps(given).encode())
    except TimeoutError:
        message = f"it has not begun within {SECONDS:g} s, and goes on to; look at the list of jobs, or of endpoints"
        raise RefusedError(503, "Unavailable", message) from None
    try:
        return json.loads(out)
    except ValueError:
        if process.returncode == -signal.SIGKILL:
            message = f"nothing has begun within {SECONDS:g} s, and the process that was to do it was ended; try again"
            raise RefusedError(503, "Unavailable", message) from None
        message = f"the process that was to do it ended with code {process.returncode}"
        raise RefusedError(500, "Internal", message) from None


def answer(perform: Callable[[dict[str, Any]], Any]) -> None:
    """Does what standard input asks for, and says on standard output what came of it: in the process of its own.

    Args:
        perform: does it; what it prints is no part of the answer.
    """
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        found = perform(json.load(sys.stdin))
    try:
        out.write(json.dumps(found))
        out.flush()
    except BrokenPipeError:
        os._exit(0)  # The server is gone, and the job runs.
