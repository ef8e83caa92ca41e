"""A tuning job that writes where it stands, one mark a moment, for who types Ctrl-C there: `python -m` this module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

NAME = "interrupted"


def mark(moment: str) -> None:
    """Writes that a moment begins; past `sys.stdout`, which a live view holds back."""
    print(f"[at {moment}]", file=sys.__stdout__, flush=True)


def marked(moment: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which writes that it begins."""

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        mark(moment)
        return function(*arguments, **options)

    return run


def main(trials: int, command: list[str]) -> None:
    """Runs a job of so many trials; with a command, as `hpo` does it, else as a user's script does."""
    mark("import")
    import ray

    from hpo.callbacks import Callbacks
    from hpo.cli import main as run_hpo
    from tests.support.boosting import CHANNELS, make
    from trainers.ray_gangs import RayGangs

    for owner, name in ((ray, "init"), (ray, "shutdown"), (RayGangs, "close"), (Callbacks, "job_end")):
        setattr(owner, name, marked(name, getattr(owner, name)))
    if command:
        sys.argv = ["hpo", *command]
        run_hpo()
    else:
        make(workers=1, max_jobs=trials, console=None).fit(CHANNELS, job_name=NAME)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
