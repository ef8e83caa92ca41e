"""The head of a Ray cluster: asked for an answer before a job joins, and watched while the job runs.

Ray itself tries for minutes to reach a head that is not there, and ends a process whose cluster has gone.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import AuthenticationError, RayError

from trainers.errors import ConnectError, GangError, WarmbandError
from trainers.process import whole

ANSWER_SECONDS = 30.0
"""Seconds to wait for a head: one that was started just now takes some."""

LOOK_SECONDS = 5.0
"""Seconds between a running job's looks at its head."""

MISSED = 3
"""Looks in a row without an answer until the user is told."""

RESUME = "What was found is kept: `hpo resume` goes on with the job"
"""The end of an error that a job can go on from."""


def join(address: str, **options: Any) -> None:
    """Joins the cluster that `RAY_ADDRESS` names.

    Args:
        address: the variable's value, such as "10.0.0.5:6379" or "auto".
        options: further ones of `ray.init`.

    Raises:
        ConnectError: nothing answers there, or it does not let this process in.
    """
    if (place := _place(address)) is not None:
        _wait_for(address, place)
    try:
        with whole():
            ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        raise ConnectError(f"RAY_ADDRESS={address!r}: {_reason(error)}") from error


@contextmanager
def watched(notify: Callable[[str], None]) -> Iterator[None]:
    """Tells the user when the head of the open session's cluster has gone, while a block runs.

    Args:
        notify: is told, by a thread, when the head has not answered for some time, and when it answers again.

    Raises:
        GangError: the block ended with an error, none of Warmband's, and the cluster is not there any more.
    """
    address = ray.get_runtime_context().gcs_address
    place = _place(address)
    if place is None:
        yield
        return
    ended = threading.Event()
    threading.Thread(target=_watch, args=(address, place, notify, ended), name="warmband-head", daemon=True).start()
    try:
        yield
    except WarmbandError:
        raise
    except Exception as error:
        if not _missed(place):
            raise
        raise GangError(f"the Ray cluster at {address} is gone ({type(error).__name__}). {RESUME}") from error
    finally:
        ended.set()


def is_there() -> bool:
    """Whether the head of the open session's cluster takes connections; true where its address does not tell."""
    place = _place(ray.get_runtime_context().gcs_address)
    return place is None or not _missed(place)


def _watch(address: str, place: tuple[str, int], notify: Callable[[str], None], ended: threading.Event) -> None:
    missed = 0
    while not ended.wait(LOOK_SECONDS):
        if _missed(place):
            missed += 1
            if missed == MISSED:
                notify(
                    f"warning: the head of the Ray cluster, {address}, does not answer; after a minute of that Ray "
                    f"ends this process. {RESUME}"
                )
        else:
            if missed >= MISSED:
                notify(f"the head of the Ray cluster, {address}, answers again")
            missed = 0


def _place(address: str) -> tuple[str, int] | None:
    """The host and port of an address that has them."""
    host, _, port = address.strip().rpartition(":")
    return (host.strip("[]"), int(port)) if port.isdecimal() and host and "/" not in host else None


def _wait_for(address: str, place: tuple[str, int]) -> None:
    """Waits until something takes connections there.

    Raises:
        ConnectError: nothing does.
    """
    deadline = time.monotonic() + ANSWER_SECONDS
    while problem := _missed(place):
        if time.monotonic() > deadline:
            raise ConnectError(
                f"RAY_ADDRESS={address!r}: waited {ANSWER_SECONDS:g} s and nothing answers there ({problem}); start "
                "its head (ray start --head), or unset RAY_ADDRESS to run on this machine"
            )
        time.sleep(0.5)


def _missed(place: tuple[str, int]) -> str:
    """The reason that nothing takes connections there; empty if something does."""
    try:
        socket.create_connection(place, timeout=LOOK_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _reason(error: BaseException | None) -> str:
    """The obstacle to joining, and its remedy."""
    first = str(error).partition("\n")[0] or type(error).__name__
    while error is not None:
        if isinstance(error, AuthenticationError) or AuthenticationError.__name__ in str(error):
            return (
                "the cluster wants a token, and this process sends none or another; set RAY_AUTH_MODE=token, and "
                "RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH to a file that holds it, where it is not in ~/.ray/auth_token"
            )
        error = error.__cause__ or error.__context__
    return f"it cannot be joined: {first}"
