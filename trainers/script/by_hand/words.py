"""Words of a command, as a shell takes them; values that are known when it runs stand there as variables."""

from __future__ import annotations

import re
import shlex

RUN = "/WARMBAND RUN"
"""Stands for the folder that a run makes for itself. Its space lets each quotation around it be one."""
RUN_VARIABLE = "warmband_run"
PORT_VARIABLE = "warmband_port_"
"""The variable with a worker's free port, before its rank."""
_FIRST_PORT = 731_840_559_213_640_000
"""Stands for the free port of worker 0, as a number that is no port; those of other workers follow."""
_MOST_PORTS = 10_000
_STANDS = re.compile(rf"{RUN}|/WARMBAND DATA (?P<data>\w+);|(?<!\d){_FIRST_PORT // _MOST_PORTS}(?P<port>\d{{4}})(?!\d)")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def port_of(worker: int) -> int:
    """Return the number that stands for the free port of a worker."""
    return _FIRST_PORT + worker


def folder_in(variable: str) -> str:
    """Return the text that stands for a folder that the user gives in a variable."""
    return f"/WARMBAND DATA {variable};"


def variable_named(text: str) -> str:
    """Return a text as a name that a shell takes for a variable."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)


def quoted(word: str) -> str:
    """Return a word as a shell takes it, with variables in the place of what stands for them."""
    written, at = "", 0
    for found in _STANDS.finditer(word):
        written += _plain(word[at : found.start()]) + f'"${{{_variable(found)}}}"'
        at = found.end()
    return written + _plain(word[at:]) or "''"


def assigned(name: str, value: str) -> str:
    """Return an assignment of a variable, as it stands before a command; see `needs_env`."""
    return f"{name}={quoted(value)}" if _NAME.fullmatch(name) else quoted(f"{name}={value}")


def needs_env(name: str) -> bool:
    """Return whether a shell does not assign to a name, such as batch-size, so that `env` has to."""
    return _NAME.fullmatch(name) is None


def _plain(text: str) -> str:
    return shlex.quote(text) if text else ""


def _variable(found: re.Match[str]) -> str:
    if found["data"]:
        return f"{found['data']}:?"
    return f"{PORT_VARIABLE}{int(found['port'])}" if found["port"] else RUN_VARIABLE
