"""Processes that meet at a gate and then do one thing at the same moment, as drivers that share a store do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LIGHT = """
import sys, types
for package in ("hpo", "trainers"):
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = [package]
"""
"""Begins a program that imports the store's modules without the packages that they are in, which takes seconds less."""

GATE = """
print("ready", flush=True)
sys.stdin.readline()
"""
"""The gate at which a program waits for the others."""


@contextmanager
def at_once(program: str, each: Sequence[Sequence[str]]) -> Iterator[list[subprocess.Popen[str]]]:
    """Runs a program once with each of these arguments, and opens its gate when all stand before it.

    The processes can be talked to by their standard input and output; those that are left at the end are killed.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for arguments in each
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()
