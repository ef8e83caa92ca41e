"""Ctrl-C at every moment of a job, once and twice, on a busy machine: `python -m tests.support.ctrl_c_rounds`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.busy_machine import busy_processes
from hpo.record.store import Store
from hpo.search.trial import UNTUNED
from tests.support import yaml_text
from tests.support.marked_job import LEAST, METRIC, MOST, NAME, STATIC, UNITS, channels
from tests.support.terminals import CTRL_C, left_behind, terminal_of

ROOT = Path(__file__).parents[2]
SECONDS = 300.0
"""That a moment, and the end, are waited for."""

ENDLESS, SHORT = 5000, 2
"""Trials of a job that is stopped, and of one that ends by itself."""

LAST_WORDS = f"hpo describe {NAME}"
AGAIN = "Ctrl-C again stops now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """When Ctrl-C is typed.

    Args:
        name: of the moment.
        presses: what is waited for on the terminal, and how many seconds later Ctrl-C is typed.
        trials: of the job.
        announced: whether the job is in the record by then.
        stops: whether there is something left to stop; else it has ended by itself.
    """

    name: str
    presses: tuple[tuple[str, float], ...]
    trials: int = ENDLESS
    announced: bool = True
    stops: bool = True

    @property
    def times(self) -> int:
        """How often Ctrl-C is typed."""
        return len(self.presses)


def cases() -> list[Case]:
    """Every moment, once and twice: the second at once, after the answer to the first, and later."""
    found = []
    moments = {
        "import": "[at import]",
        "announced": f"Tuning job {NAME}",
        "ray.init": "[at init]",
        "first gang": "the first gang is starting",
        "probe": "measuring",
        "training": " after ",
    }
    for name, text in moments.items():
        rest: dict[str, Any] = {"announced": name != "import"}
        found.append(Case(name=name, presses=((text, 0.0),), **rest))
        found.append(Case(name=f"{name}, at once", presses=((text, 0.0), ("", 0.0)), **rest))
        if rest["announced"]:
            found.append(Case(name=f"{name}, on the answer", presses=((text, 0.0), (AGAIN, 0.0)), **rest))
            found.append(Case(name=f"{name}, 1 s later", presses=((text, 0.0), (AGAIN, 1.0)), **rest))
    for name in ("close", "shutdown", "job_end"):
        at = f"[at {name}]"
        ended: dict[str, Any] = {"trials": SHORT, "stops": False}
        found.append(Case(name=name, presses=((at, 0.0),), **ended))
        found.append(Case(name=f"{name}, at once", presses=((at, 0.0), ("", 0.0)), **ended))
        found.append(Case(name=f"training, then {name}", presses=((" after ", 0.0), (at, 0.0))))
    return found


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The outcome of one run; `wrong` lists its faults."""

    seconds: float
    code: int
    said: bool
    left: list[str]
    wrong: list[str] = field(default_factory=list)
    seen: str = ""


def play(case: Case, *, command: bool) -> Outcome:
    """Runs a job of its own Ray on a terminal of its own, and types Ctrl-C; as `hpo tune`, or as a script."""
    with tempfile.TemporaryDirectory(prefix="wb") as folder:
        home, scratch = Path(folder, "home"), Path(folder, "tmp")
        scratch.mkdir()
        environment = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "NO_COLOR")}
        environment |= {"TMPDIR": str(scratch), "WARMBAND_HOME": str(home), "TERM": "xterm-256color"}
        as_hpo = ["tune", _job_file(Path(folder), case.trials)] if command else []
        began = time.monotonic()
        with terminal_of(
            [sys.executable, "-m", "tests.support.marked_job", str(case.trials), *as_hpo], environment, ROOT
        ) as terminal:
            for text, later in case.presses:
                if text:
                    terminal.read_until(text, SECONDS)
                time.sleep(later)
                terminal.press(CTRL_C)
            terminal.read_until(None, SECONDS)
            code = terminal.process.wait(timeout=60)
        seconds = time.monotonic() - began
        seen = terminal.seen
        outcome = Outcome(seconds=seconds, code=code, said=LAST_WORDS in seen, left=left_behind(home, scratch, 120.0))
        outcome.seen = seen
        outcome.wrong = [*_wrong(case, outcome, command), *_wrong_record(case, outcome, home)]
        return outcome


def _job_file(folder: Path, trials: int) -> str:
    """A job file for what `marked_job` tunes as a script."""
    for name, rows in channels().items():
        rows.to_csv(folder / f"{name}.csv", index=False, header=False)
    job = {
        "name": NAME,
        "data": {"channels": {name: {"path": f"{folder}/{name}.csv"} for name in channels()}},
        "trainer": {"type": "xgboost", "num_workers": 1, "hyperparameters": STATIC},
        "tuning": {
            "objective_metric_name": METRIC,
            "hyperband": {"max_resource": UNITS, "suggestions": "random"},
            "max_jobs": trials,
            "ranges": {"max_depth": {"type": "integer", "min": LEAST, "max": MOST}},
        },
    }
    file = folder / "job.yaml"
    file.write_text(yaml_text.dump(job))
    return str(file)


def _wrong(case: Case, outcome: Outcome, command: bool) -> list[str]:
    # Python's own on KeyboardInterrupt; while it imports, `hpo` has no other.
    interrupted = (130,) if command and case.announced else (1, -signal.SIGINT, 130)
    codes = interrupted if case.stops else (0, *interrupted)  # Behind the last words Ctrl-C is Python's again.
    wrong = [] if outcome.code in codes else [f"exit code {outcome.code}, not of {codes}"]
    if case.announced and not outcome.said:
        wrong.append("no last words")
    if case.announced and case.stops and AGAIN not in outcome.seen and "at once" not in case.name:
        wrong.append("no answer to the first")
    return wrong + [f"left: {left}" for left in outcome.left]


def _wrong_record(case: Case, outcome: Outcome, home: Path) -> list[str]:
    if not (home / "warmband.db").exists():
        return ["there is no record"] if case.announced else []
    with Store(f"sqlite:///{home}/warmband.db") as store:
        jobs = {job.name: job for job in store.jobs()}
        trials = store.trials(NAME) if jobs else []
    if NAME not in jobs or not case.announced:
        return ["it is in the record" if jobs else "it is not in the record"] if case.announced != bool(jobs) else []
    ended = jobs[NAME].status, jobs[NAME].reason
    # The second while gangs close stops a job that has found all it could.
    expected = [("Stopped", "interrupted by Ctrl-C")] if case.stops or case.times > 1 else []
    expected += [] if case.stops else [("Completed", "")]
    wrong = [] if ended in expected else [f"record: {ended}"]
    if outcome.code == 0 and ended[0] != "Completed":
        wrong.append("exit code 0 for a job that was stopped")
    open_ = [trial.trial_id for trial in trials if trial.ended_at is None and trial.trial_id != UNTUNED]
    if case.times == 1 and open_:
        wrong.append(f"trials that have not ended: {open_}")
    found = bool(jobs[NAME].summary.get("best"))
    if case.times == 1 and case.name != "probe" and found != (case.name == "training" or not case.stops):
        wrong.append("its summary has a best trial" if found else "its summary has no best trial")
    return wrong


def main() -> int:
    """Plays the rounds, a line each; exits with 0 if every one was as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.ctrl_c_rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="of every case")
    parser.add_argument("--busy", type=int, default=4, help="busy loops beside")
    parser.add_argument("--at-once", type=int, default=1, help="jobs side by side")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    given = parser.parse_args()
    chosen = [case for case in cases() if given.only in case.name]
    plays = [(case, bool((number + index) % 2)) for number in range(given.rounds) for index, case in enumerate(chosen)]
    good = 0
    with busy_processes(given.busy), ThreadPoolExecutor(given.at_once) as pool:
        waiting = {pool.submit(_tried, case, command): (case, command) for case, command in plays}
        for future in as_completed(waiting):
            (case, command), outcome = waiting[future], future.result()
            good += not outcome.wrong
            line = f"{case.name:26} x{case.times} {'hpo' if command else 'script':6} {outcome.seconds:6.1f} s  "
            line += f"code {outcome.code:4}  said {'yes' if outcome.said else 'no':3}  left {len(outcome.left)}"
            print(line + (f"  WRONG: {'; '.join(outcome.wrong)}" if outcome.wrong else ""), flush=True)  # noqa: T201
            if outcome.wrong:
                print(outcome.seen[-4000:], flush=True)  # noqa: T201
    print(f"{good} of {len(plays)}")  # noqa: T201
    return 0 if good == len(plays) else 1


def _tried(case: Case, command: bool) -> Outcome:
    try:
        return play(case, command=command)
    except Exception:
        return Outcome(seconds=SECONDS, code=0, said=False, left=[], wrong=[traceback.format_exc()])


if __name__ == "__main__":
    sys.exit(main())
