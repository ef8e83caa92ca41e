"""Wrapper of one process of a program: it leads the output of all ranks but the first aside, and becomes the program.

A launcher that starts several processes mixes their output in one stream, where a metric of another rank would count as
a further unit. Run as a program, in place of the user's own, without imports of other packages.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

NAME = os.path.basename(__file__)
ASIDE = "WARMBAND_ASIDE"
"""The variable with the path of the pipe for the output of other ranks."""
GIVEN = "WARMBAND_GIVEN_RANKS"
"""The variable with the ranks that the launcher itself was given, such as "RANK=0": they say nothing of a process."""
RANKS = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "HOROVOD_RANK",
    "SLURM_PROCID",
)
"""Variables by which launchers tell a process its rank among all."""


def given(environment: Mapping[str, str]) -> str:
    """Return the value of `GIVEN` for a launcher's environment."""
    return " ".join(f"{name}={environment[name]}" for name in RANKS if name in environment)


def counts(environment: Mapping[str, str]) -> bool:
    """Return whether a process is the first of its program, or its launcher numbers none."""
    before = set(environment.get(GIVEN, "").split())
    own = (environment[name] for name in RANKS if name in environment and f"{name}={environment[name]}" not in before)
    return all(rank == "0" for rank in own)


def program_of(words: Sequence[str]) -> list[str]:
    """Return the command line of the program itself.

    Args:
        words: the command line of this process: Python, perhaps with options, the wrapper, the program, its arguments.
            Some launchers put arguments of their own between wrapper and program, such as `--local_rank=0`.
    """
    at = next(number for number, word in enumerate(words) if os.path.basename(word) == NAME)
    python, wrapper, rest = words[:at], words[at], list(words[at + 1 :])
    program = rest.pop(next(number for number, word in enumerate(rest) if not word.startswith("-")))
    # It lies beside the wrapper, also where a launcher gives another path than it was given: "../train.py", say.
    program = os.path.join(os.path.dirname(wrapper), os.path.basename(program))
    if program.endswith(".py"):
        return [*python, program, *rest]
    return [program if "/" in program else f"./{program}", *rest]


def main() -> None:
    """Become the program."""
    pipe = os.environ.get(ASIDE)
    if pipe and not counts(os.environ):
        with suppress(OSError):  # It is not to be seen from a container, say; then the output stays where it is.
            aside = os.open(pipe, os.O_WRONLY)
            os.dup2(aside, 1)
            os.dup2(aside, 2)
            os.close(aside)
    words = getattr(sys, "orig_argv", [sys.executable, *sys.argv])  # From Python 3.10 on.
    command = program_of([sys.executable, *words[1:]])
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
