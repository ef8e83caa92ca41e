"""Tuning jobs on a stack of containers: submitted and watched from outside, compared by their answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from hpo.record import Store
from tests.support import yaml_text
from tests.support.cluster import slow_training
from tests.support.cluster.drive import table
from tests.support.cluster.jobs import CHANNELS, Answer, Paced, answered, job_file, network
from tests.support.containers.stack import Stack, until

SHARED = Path("/home/ray/shared")
"""The path of the volume of this name inside the containers."""

TABLES = {channel: SHARED / "data" / f"{channel}.csv" for channel in CHANNELS}
"""The files of a job's channels, by channel; a `ContainedJob` writes them."""

BEGIN_SECONDS = 240.0
END_SECONDS = 300.0
HPO = Path(sys.executable).parent / "hpo"


def outside(stack: Stack) -> dict[str, str]:
    """The environment of a user on the machine itself, as docs/guides/deploying.md sets it."""
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith(("RAY_", "WARMBAND_"))},
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(stack.folder / "secrets" / "ray_token"),
        "WARMBAND_STORE": f"postgresql://warmband@127.0.0.1:{stack.ports[5432]}/warmband",
        "PGPASSWORD": stack.secret("postgres_password"),
    }


def hpo(stack: Stack, *arguments: str | Path, check: bool = True, timeout: float = 120.0) -> str:
    """Run an `hpo` command as a user on the machine; return its output."""
    done = subprocess.run(
        [HPO, *arguments],
        env=outside(stack),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0 or not check, done.stdout
    return done.stdout


def record_url(stack: Stack) -> str:
    """The record's URL, from outside."""
    password, port = stack.secret("postgres_password"), stack.ports[5432]
    return f"postgresql://warmband:{password}@127.0.0.1:{port}/warmband"


def record(stack: Stack) -> Store:
    """The record, from outside."""
    return Store(record_url(stack))


def boosting(name: str) -> dict[str, object]:
    """A job of XGBoost on gangs of two workers."""
    hyperparameters = {"objective": "binary:logistic", "eval_metric": "auc"}
    return job_file(name, TABLES, {"type": "xgboost", "num_workers": 2, "hyperparameters": hyperparameters})


class ContainedJob(Paced):
    """A small network on gangs of three workers, which no container of two CPUs holds alone.

    Args:
        stack: where it runs.
        folder: an empty one, which goes along.
        name: the job's.
        slow: see `Paced`.
        slow_after: see `Paced`.
    """

    def __init__(
        self, stack: Stack, folder: Path, name: str, *, slow: float | None = None, slow_after: int = 0
    ) -> None:
        self._stack, self.name, self._shared = stack, name, stack.volume("shared")
        paced = self._shared / "paced"
        paced.mkdir(exist_ok=True)
        for path in (paced, self._shared / "data"):
            path.mkdir(exist_ok=True)
            path.chmod(0o777)  # Root writes here, and `ray` there.
        super().__init__(paced / name, slow=slow, slow_after=slow_after)
        self._folder = folder
        self._address = f"http://127.0.0.1:{stack.ports[8265]}"
        folder.mkdir()
        shutil.copy(slow_training.__file__, folder / "slow_training.py")
        (folder / "job.yaml").write_text(yaml_text.dump(self._values()))
        said = hpo(
            stack, "submit", folder / "job.yaml", "--working-dir", folder, "--allow-code",
            "--address", self._address,
        )  # fmt: skip
        assert stack.secret("postgres_password") not in said

    def _inside(self, path: str | Path) -> str:
        return str(SHARED / Path(path).relative_to(self._shared))

    def _values(self) -> dict[str, object]:
        for number, (channel, rows) in enumerate(CHANNELS.items()):
            table(rows, number + 1).to_csv(self._shared / "data" / f"{channel}.csv", index=False)
        static = {name: self._inside(text) if isinstance(text, str) else text for name, text in self.static.items()}
        return job_file(self.name, TABLES, network("slow_training:train", 3, static))

    def until_epoch(self, after: int) -> None:
        """Waits for an epoch later than number `after`, of any trial."""

        def there() -> bool:
            lines = self.trained()
            return any(int(number) > after for seed, number, _ in lines if seed != lines[0][0])

        until(there, f"an epoch of {self.name} after number {after}", BEGIN_SECONDS)

    def resume(self) -> None:
        """Has the cluster go on with it, by Ray's own command."""
        resume = ["hpo", "resume", self.name, "--allow-code"]
        done = subprocess.run(
            [
                *(HPO.with_name("ray"), "job", "submit", "--no-wait", "--address", self._address),
                *("--working-dir", self._folder, "--", *resume),
            ],
            env=outside(self._stack),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def ended(self) -> str:
        """Its status, once it has ended."""

        def look() -> str:
            with record(self._stack) as store:
                status = store.job(self.name).status
            return "" if status in ("InProgress", "Stopping") else status

        return str(until(look, f"the end of {self.name}", END_SECONDS))

    def attempts(self) -> int:
        """How often assignments were handed out again, because their gang was lost."""
        with record(self._stack) as store:
            return sum(trial.attempts for trial in store.trials(self.name))

    def answer(self) -> Answer:
        """Wait until the job is Completed; return its answer."""
        self.ended()

        def here(path: str) -> Path:
            return self._shared / Path(path).relative_to(SHARED)

        return answered(record_url(self._stack), self.name, self.trials(), here)
