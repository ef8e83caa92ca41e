"""Jobs on a Ray cluster through Ray's Jobs API: submission, status and output."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import platform
import shlex
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpo.jobs.launch.whereabouts import owner, ray_job, without_password
from hpo.text import holds_secret, masked
from trainers.errors import ConfigurationError, WarmbandError

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient

ADDRESS_VARIABLES = ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS")
"""What Ray itself looks at for the jobs server, the first before the second, both before an argument."""

ANSWER_SECONDS = 10.0
"""How long a jobs server may take to answer the first time."""

AGENT_SECONDS = 30.0
"""How long a head that has just started may take until it can run jobs."""

_MIB = 2**20
_TALKATIVE = (
    "ray.dashboard.modules.dashboard_sdk",
    "ray.dashboard.modules.job.sdk",
    "ray._private.runtime_env.packaging",
)
"""Loggers that tell of every upload and every connection that ends."""

_OVER = ("SUCCEEDED", "FAILED", "STOPPED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job as Ray knows it.

    Args:
        id: Ray's name for it.
        status: PENDING, RUNNING, SUCCEEDED, FAILED or STOPPED.
        message: what Ray says of it, its last lines where it failed.
    """

    id: str
    status: str
    message: str

    @property
    def over(self) -> bool:
        """Whether its entry point has ended."""
        return self.status in _OVER


class JobsServer:
    """The jobs server of a Ray cluster, which is its dashboard's. Tokens are found where Ray finds them.

    Args:
        address: "http://HEAD:8265"; None is `RAY_API_SERVER_ADDRESS`, else `RAY_ADDRESS`, else a cluster that is found
            on this machine.

    Raises:
        ConfigurationError: nothing answers there, it refuses the token, or it runs another version of Ray.
    """

    def __init__(self, address: str | None = None) -> None:
        headers = _authorization()
        address = address or next((value for name in ADDRESS_VARIABLES if (value := os.environ.get(name))), None)
        told = address is not None and address.startswith(("http://", "https://"))
        if told:
            _check_version(str(address).rstrip("/"), headers)  # First: Ray's client knows no deadline.
        self._client = _connected(address, headers)
        self.address = without_password(self._client.get_address())
        if not told:
            _check_version(self._client.get_address(), headers)

    def submit(
        self,
        name: str,
        command: Sequence[str],
        *,
        working_dir: Path | None = None,
        environment: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
        submission_id: str | None = None,
    ) -> str:
        """Hands a job's driver to the cluster, and returns at once.

        The packages are those of the cluster's nodes; the entry point refuses to run with another Python or Ray than
        this process has. Nothing secret may be in what is given here: Ray shows it to whoever may look at its jobs.

        Args:
            name: the tuning job's.
            command: what to run, in words.
            working_dir: a folder that goes along and that the command runs in; None sends nothing.
            environment: variables for the command, and for workers.
            tags: kept in the job's metadata.
            submission_id: Ray's name for the job; None is the job's own.

        Returns:
            Ray's name for the job.

        Raises:
            ConfigurationError: Ray has had a job of that name, or the working directory is too large.
            WarmbandError: the cluster refuses the job.
        """
        for word in [*command, *(environment or {}).values()]:
            check_no_password(word)
        metadata = {
            "job_name": name,
            "owner": owner(),
            "jobs_server": self.address,
            "pinned": json.dumps(pinned()),
            **({"tags": json.dumps(dict(tags))} if tags else {}),
        }
        runtime_env: dict[str, Any] = {"env_vars": dict(environment or {})}
        if working_dir is not None:
            runtime_env["working_dir"] = str(working_dir)
        deadline = time.monotonic() + AGENT_SECONDS
        while True:
            try:
                return self._client.submit_job(
                    entrypoint=shlex.join(command),
                    submission_id=submission_id or name,
                    metadata=metadata,
                    runtime_env=runtime_env,
                )
            except (RuntimeError, ValueError, OSError) as error:
                if "No available agent" not in str(error) or time.monotonic() > deadline:
                    raise _refusal(error, name, self.address, working_dir) from error
            time.sleep(1.0)  # The head has just started.

    def look(self, submission_id: str) -> Submission:
        """A job as it is now.

        Raises:
            ConfigurationError: the cluster has no such job.
        """
        with self._asking(submission_id):
            info = self._client.get_job_info(submission_id)
        return Submission(id=submission_id, status=info.status.value, message=info.message or "")

    def failure(self, submission_id: str) -> str:
        """Why a job's entry point ended badly, in its own last line; empty where it runs or went well."""
        job = self.look(submission_id)
        if not job.over or job.status == "SUCCEEDED":
            return ""
        return next((line for line in reversed(job.message.splitlines()) if line.strip()), f"Ray says {job.status}")

    def log(self, submission_id: str) -> str:
        """All that a job's driver has printed.

        Raises:
            ConfigurationError: the cluster has no such job.
        """
        with self._asking(submission_id):
            return self._client.get_job_logs(submission_id)

    def follow(self, submission_id: str) -> Iterator[str]:
        """The output of a job's driver, in pieces, until it ends.

        Raises:
            ConfigurationError: the cluster has no such job.
            WarmbandError: the connection was lost.
        """
        self.look(submission_id)
        with self._asking(submission_id), asyncio.Runner() as runner:
            pieces = self._client.tail_job_logs(submission_id).__aiter__()

            async def piece() -> str | None:
                return await anext(pieces, None)

            while (text := runner.run(piece())) is not None:
                yield text

    @contextmanager
    def _asking(self, submission_id: str) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, OSError) as error:
            message = str(error)
            if "404" in message or "does not exist" in message:
                raise ConfigurationError(
                    f"the Ray cluster at {self.address} has no job {submission_id!r}; is it another cluster, or was "
                    "its head started anew since? Give --address of the one that ran it"
                ) from error
            raise WarmbandError(
                f"the jobs server at {self.address} was lost while it was asked for {submission_id!r}: "
                f"{message.strip().splitlines()[0] if message.strip() else type(error).__name__}"
            ) from error


def pinned() -> dict[str, str]:
    """The versions that a submitted job is to run with."""
    import ray

    return {"python": ".".join(platform.python_version_tuple()[:2]), "ray": ray.__version__}


def check_pinned() -> None:
    """Refuses to drive a Ray job on other versions of Python or Ray than it was submitted with.

    Raises:
        ConfigurationError: naming both.
    """
    if not (asked := ray_job().get("pinned")):
        return
    wanted, versions = json.loads(asked), pinned()
    wrong = [f"{what} {versions[what]}, not {wanted[what]}" for what in versions if wanted.get(what) != versions[what]]
    if wrong:
        raise ConfigurationError(
            f"the cluster's nodes have {' and '.join(wrong)} as where the job was submitted; submit it from an "
            "environment like the cluster's image, or with: ray job submit --working-dir . -- hpo tune JOB.yaml"
        )


def check_no_password(text: str) -> None:
    """Refuses text with a password in a URL, which Ray would keep and show.

    Raises:
        ConfigurationError: it has one.
    """
    if holds_secret(text):
        raise ConfigurationError(
            f"{masked(text)!r} has a password in it, and Ray shows a job's command and environment to all who may see "
            "its jobs; set WARMBAND_STORE, or PGPASSWORD and the like, in the environment of the cluster's nodes "
            "instead"
        )


def _authorization() -> dict[str, str]:
    """The header that a cluster with token authentication wants; none where this user has no token.

    Ray's own client sends it only if `RAY_AUTH_MODE` is "token"; whoever gives a token by name means it, too.
    """
    asked = os.environ.get("RAY_AUTH_MODE", "").lower()
    token = os.environ.get("RAY_AUTH_TOKEN", "")
    file = os.environ.get("RAY_AUTH_TOKEN_PATH") or ("~/.ray/auth_token" if asked == "token" else "")
    if asked == "disabled":
        return {}
    if not token and file:
        try:
            token = Path(file).expanduser().read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(
                f"there is no token for Ray: {file} cannot be read ({error.strerror or error}); set RAY_AUTH_TOKEN, or "
                "RAY_AUTH_TOKEN_PATH to a file with the cluster's token"
            ) from None
    return {"Authorization": f"Bearer {token.strip()}"} if token.strip() else {}


def _connected(address: str | None, headers: dict[str, str]) -> JobSubmissionClient:
    from ray.exceptions import AuthenticationError
    from ray.job_submission import JobSubmissionClient

    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        with _without_variables():
            return JobSubmissionClient(address, headers=headers)
    except AuthenticationError as error:
        raise _unauthorized(address, had_token=bool(headers)) from error
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise _nobody(address, str(error).strip().splitlines()[-1] if str(error).strip() else "") from error


@contextmanager
def _without_variables() -> Iterator[None]:
    """For Ray its variables go before the argument; whoever gives an address means that one."""
    kept = {name: os.environ.pop(name) for name in ADDRESS_VARIABLES if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


def _check_version(address: str, headers: dict[str, str]) -> None:
    import ray

    there = _version(address, headers)
    if there != ray.__version__:
        raise ConfigurationError(
            f"the cluster at {without_password(address)} runs Ray {there}, and this process Ray {ray.__version__}; "
            f"install ray=={there} here, or a cluster of Ray {ray.__version__}"
        )


def _version(address: str, headers: dict[str, str]) -> str:
    request = urllib.request.Request(f"{address}/api/version", headers=headers)
    deadline = time.monotonic() + ANSWER_SECONDS
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:
            return str(json.load(response)["ray_version"])
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise _unauthorized(address, had_token=bool(headers)) from None
        raise _nobody(address, f"it answers with {error.code} {error.reason}, as no Ray dashboard does") from None
    except (OSError, ValueError, KeyError) as error:
        late = time.monotonic() >= deadline - 0.5
        cause = getattr(error, "reason", error)
        message = getattr(cause, "strerror", None) or str(cause)
        reason = f"no answer within {ANSWER_SECONDS:g} s" if late else message.lower()
        raise _nobody(address, reason) from None


def _nobody(address: str | None, why: str) -> ConfigurationError:
    where = without_password(address) if address else "this machine, and no address was given"
    return ConfigurationError(
        f"no Ray jobs server at {where}: {why}; give the address of the head's dashboard, such as http://HEAD:8265, as "
        "--address or in RAY_API_SERVER_ADDRESS. `ray start --head` says where it listens"
    )


def _unauthorized(address: str | None, *, had_token: bool) -> ConfigurationError:
    where = without_password(address or "") or "the Ray cluster"
    refusal = "refuses this token" if had_token else "wants a token, and there is none"
    return ConfigurationError(
        f"{where} {refusal}; set RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH to a file that holds it, to the token of the "
        "cluster: on its head, `ray get-auth-token` shows it"
    )


def _refusal(error: Exception, name: str, address: str, working_dir: Path | None) -> WarmbandError:
    message = str(error)
    if "already exists" in message:
        return ConfigurationError(
            f"the Ray cluster at {address} has had a job {name!r}; give another --name, or go on with that one: "
            f"hpo resume {name}"
        )
    if "413" in message or "exceeds" in message or "Maximum request body size" in message:
        return ConfigurationError(
            f"the working directory {str(working_dir)!r} is too large for Ray to upload, more than 100 MiB when "
            f"packed ({_largest(working_dir)}); give a smaller --working-dir, or name what is not needed in its "
            ".gitignore or .rayignore. Data belongs where all nodes see it, not into the working directory"
        )
    return WarmbandError(f"the Ray cluster at {address} refuses job {name!r}: {message.strip().splitlines()[-1]}")


def _largest(folder: Path | None) -> str:
    """The largest thing in a folder."""
    sizes = {each.name: _size(each) for each in folder.iterdir()} if folder and folder.is_dir() else {}
    if not sizes:
        return "nothing in it"
    name = max(sizes, key=lambda each: sizes[each])
    return f"{name} alone has {sizes[name] / _MIB:,.0f} MiB"


def _size(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return sum(each.lstat().st_size for each in path.rglob("*") if each.is_file())
    return path.lstat().st_size
