"""Caller of an operation: the record in its hands, and jobs by the service's names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hpo.record import UNTUNED, JobRow, Store, TrialQuery, TrialRow, is_training, split
from hpo.serve.aws.creating import request_of
from hpo.serve.aws.errors import ServiceError, invalid
from hpo.serve.aws.keys import AccessKey
from trainers.errors import NoJobError

TUNING, TRAINING = "hyper-parameter-tuning-job", "training-job"
"""Kinds of jobs in ARNs."""

_ARN = re.compile(rf"arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:\d{{12}}:({TUNING}|{TRAINING})/(.+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls an operation, and on what.

    Args:
        store: the record.
        store_url: its URL, for jobs that are created; None is the default one.
        tables: of images and instance types.
        key: by which the request is signed.
        region: for which it is signed; it stands in ARNs and means nothing else.
        again: whether its client has sent the request before, and had no answer in time.
    """

    store: Store
    store_url: str | None
    tables: Any
    key: AccessKey
    region: str
    account: str = "000000000000"
    again: bool = False

    def arn(self, kind: str, name: str) -> str:
        """The ARN of a job."""
        return f"arn:aws:sagemaker:{self.region}:{self.account}:{kind}/{name}"

    def tuning_job(self, name: str) -> JobRow:
        """A tuning job.

        Raises:
            ServiceError: there is none of that name.
        """
        job = self._job(name)
        if job is None or is_training(job):
            raise _none("tuning job", name)
        return job

    def training_job(self, name: str) -> tuple[JobRow, TrialRow | None]:
        """A training job, or a tuning job and its trial of that name; a training job has None.

        Raises:
            ServiceError: there is none of that name.
        """
        job = self._job(name)
        if job is not None and is_training(job):
            return job, None
        if (found := self._trial(name)) is None:
            raise _none("training job", name)
        return found

    def by_arn(self, arn: str, *, changes: bool = False) -> JobRow:
        """Return the job that has the tags of an ARN; those of a trial are its tuning job's.

        Args:
            arn: of a job, or of a trial.
            changes: whether the tags are to be changed, which a trial has none of its own for.

        Raises:
            ServiceError: it is of another kind of thing, or of no job; or of a trial whose tags are to be changed.
        """
        found = _ARN.fullmatch(arn)
        if found is None:
            raise invalid(f"ResourceArn is {arn!r}, of no {TUNING} and no {TRAINING}; other things are not here")
        if found[1].lower() == TUNING:
            return self.tuning_job(found[2])
        job, trial = self.training_job(found[2])
        if trial is not None and changes:
            raise invalid(
                f"{arn} is a training job of tuning job {job.name!r}; give that one's ARN, which has the tags"
            )
        return job

    def _job(self, name: str) -> JobRow | None:
        try:
            return self.store.job(name)
        except NoJobError:
            return None

    def _trial(self, name: str) -> tuple[JobRow, TrialRow] | None:
        """A trial by its name, which begins with its job's."""
        ahead, dash, last = name.rpartition("-")
        if not dash or (job := self._job(ahead)) is None or is_training(job):
            return None
        if last == UNTUNED:
            _, untuned = split(self.store.trials(ahead))
            return None if untuned is None else (job, untuned)
        found = self.store.find_trials(TrialQuery(most=1, job=ahead, trial_id=name))
        return (job, found[0][1]) if found else None


def create_once(
    caller: Caller,
    name: str,
    what: str,
    request: dict[str, Any],
    create: Callable[[str | None, dict[str, Any], Any], None],
) -> None:
    """Creates a job, where the same request has not done so before its client sent it again.

    Args:
        caller: who asks.
        name: the job's.
        what: it is, in the message.
        request: checked.
        create: creates it: given the record's URL, the request and the tables.

    Raises:
        ServiceError: a job has the name, also one that was created meanwhile; or it does not go.
    """
    if _is_there(caller, name, what, request):
        return
    try:
        create(caller.store_url, request, caller.tables)
    except ServiceError:
        if not _is_there(caller, name, what, request):
            raise


def _is_there(caller: Caller, name: str, what: str, request: dict[str, Any]) -> bool:
    try:
        job = caller.store.job(name)
    except NoJobError:
        return False
    if caller.again and request_of(job) == request:
        return True
    raise ServiceError("ResourceInUse", f"{what} names must be unique, and there is a job named {name!r}")


def _none(what: str, name: str) -> ServiceError:
    return ServiceError("ResourceNotFound", f"Requested resource not found: there is no {what} {name!r}")
