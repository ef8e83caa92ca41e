"""Routes that read: jobs, trials, curves, bills, lines and logs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from hpo.sagemaker import describe_act
from hpo.serve.encoding import encoded
from hpo.serve.errors import RefusedError
from hpo.serve.following import FollowedJob, Follower, JobList
from hpo.serve.rest import documents
from hpo.serve.rest.pages import Sort, page_of
from hpo.serve.rest.recorded_file import recorded_file
from hpo.serve.security import session
from hpo.serve.service import Service

router = APIRouter(tags=["look"])

JobName = Annotated[str, Path(description="The job's name.", max_length=64)]
TrialName = Annotated[str, Path(description="The trial's name.", max_length=200)]


def service_of(request: Request) -> Service:
    """What all parts share."""
    service: Service = request.state.service
    return service


@router.get("/session")
async def who(request: Request) -> Response:
    """Who one is, what one may do, and the CSRF token of a browser's session."""
    return session(request, service_of(request).sessions)


@router.get("/jobs")
async def jobs(
    request: Request,
    search: Annotated[str, Query(description="Words of name, owner, strategy, metric or tags.", max_length=200)] = "",
    status: Annotated[str, Query(description="Statuses, with commas between.", max_length=200)] = "",
    sort: Annotated[Sort, Query(description="What they are ordered by.")] = "created",
    order: Annotated[Literal["asc", "desc"], Query(description="Which end comes first.")] = "desc",
    limit: Annotated[int, Query(ge=1, le=1000, description="Jobs at most.")] = 100,
    after: Annotated[str, Query(description="The cursor `next` of a page before.", max_length=1000)] = "",
) -> Response:
    """Jobs, a page at a time; `malformed` names those whose rows in the record cannot be read."""
    service = service_of(request)
    follower = service.hub.jobs
    listed: JobList = await follower.fresh()

    def make() -> bytes:
        return page_of(
            listed.lines.values(),
            malformed=listed.malformed,
            search=search,
            status=status,
            sort=sort,
            descending=order == "desc",
            limit=limit,
            after=after,
        )

    return await _cached(request, follower, ("jobs", search, status, sort, order, limit, after), make)


@router.get("/jobs/{job}")
async def job(request: Request, job: JobName) -> Response:
    """A job, as `hpo describe --json` has it."""
    return await _of_job(request, job, ("job",), lambda followed: followed.described())


@router.get("/jobs/{job}/file")
async def job_file(request: Request, job: JobName) -> Response:
    """The job as a job file, and what of it has to be filled in for another one like it."""
    return await _of_job(request, job, ("file",), lambda followed: recorded_file(followed.snapshot().job))


@router.get("/jobs/{job}/summary")
async def summary(request: Request, job: JobName) -> Response:
    """A job's line of the list, as its `job` events have it."""
    return await _of_job(request, job, ("summary",), lambda followed: followed.summary())


@router.get("/jobs/{job}/trials")
async def trials(
    request: Request,
    job: JobName,
    after_number: Annotated[int, Query(ge=-1, description="`next` of the page before.")] = -1,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Trials at most.")] = 100,
    sort: Annotated[Literal["number", "best"], Query(description="In order of suggestion, or the best first.")] = (
        "number"
    ),
) -> Response:
    """Trials, as `hpo trials --json` has them, a page at a time."""
    make = partial(documents.trials_page, after=after_number, limit=limit, sort=sort)
    return await _of_job(request, job, ("trials", after_number, limit, sort), make)


@router.get("/jobs/{job}/trials/{trial}")
async def one_trial(request: Request, job: JobName, trial: TrialName) -> Response:
    """A trial."""
    return await _of_job(request, job, ("trial", trial), lambda followed: documents.one_trial(followed, trial))


@router.get("/jobs/{job}/trials/{trial}/reports")
async def reports(request: Request, job: JobName, trial: TrialName) -> Response:
    """A trial's reports, by column."""
    store = service_of(request).open
    return await _of_job(
        request, job, ("reports", trial), lambda followed: documents.trial_reports(store(), followed, trial)
    )


@router.get("/jobs/{job}/curves")
async def curves(
    request: Request,
    job: JobName,
    metric: Annotated[str | None, Query(description="The objective, where none is named.", max_length=200)] = None,
    points: Annotated[int, Query(ge=2, le=10_000, description="Of a curve at most.")] = 200,
) -> Response:
    """Learning curves of all trials, thinned, by column."""
    store = service_of(request).open
    return await _of_job(
        request,
        job,
        ("curves", metric, points),
        lambda followed: documents.curves(store(), followed, metric, points),
    )


@router.get("/jobs/{job}/ledger")
async def ledger(
    request: Request,
    job: JobName,
    after: Annotated[float, Query(description="Unix seconds; segments that end behind it.")] = 0.0,
) -> Response:
    """Billed seconds of gangs as segments, by column."""
    store = service_of(request).open
    return await _of_job(request, job, ("ledger", after), lambda followed: documents.ledger(store(), job, after))


@router.get("/jobs/{job}/lines")
async def lines(
    request: Request,
    job: JobName,
    after: Annotated[str, Query(description="The id of a line.", max_length=100)] = "",
    limit: Annotated[int, Query(ge=1, le=10_000, description="Lines at most.")] = 500,
) -> Response:
    """What the job's drivers said."""
    store = service_of(request).open
    return await _of_job(
        request, job, ("lines", after, limit), lambda followed: documents.lines(store(), job, after, limit)
    )


@router.get("/jobs/{job}/logs")
async def logs(
    request: Request,
    job: JobName,
    tail: Annotated[int, Query(ge=1, le=10_000, description="Lines at most.")] = 200,
) -> Response:
    """The last lines of the driver's output."""
    store = service_of(request).open
    return await _of_job(
        request, job, ("logs", tail), lambda followed: documents.log(store(), followed.snapshot().job, tail), live=True
    )


@router.get("/jobs/{job}/acts")
async def acts(request: Request, job: JobName) -> Response:
    """What persons did to the job, by time."""

    def make(followed: FollowedJob) -> dict[str, Any]:
        return {"acts": [describe_act(act) for act in followed.snapshot().acts]}

    return await _of_job(request, job, ("acts",), make)


@router.get("/jobs/{job}/gangs")
async def gangs(request: Request, job: JobName) -> Response:
    """The job's gangs and their bills."""
    store = service_of(request).open
    return await _of_job(request, job, ("gangs",), lambda followed: documents.gangs(store(), followed.snapshot().job))


@router.get("/jobs/{job}/forecast")
async def forecast(request: Request, job: JobName) -> Response:
    """What was expected of the job, and what it took so far."""
    return await _of_job(
        request, job, ("forecast",), lambda followed: {"forecast": followed.snapshot().job.summary.get("forecast")}
    )


@router.get("/jobs/{job}/plan")
async def plan(request: Request, job: JobName) -> Response:
    """The brackets that the job's search fills, of which each has rungs and sizes; null where it has none."""
    return await _of_job(request, job, ("plan",), lambda followed: {"plan": followed.snapshot().job.plan or None})


@router.get("/jobs/{job}/events")
async def job_events(
    request: Request,
    job: JobName,
    after: Annotated[str, Query(description="The id of the last event seen; else Last-Event-ID.", max_length=100)] = "",
) -> Response:
    """Server-sent events of a job."""
    async with _malformed_named(request, job):
        return _stream(request, await service_of(request).hub.followed(job), after)


@router.get("/events")
async def events(
    request: Request,
    after: Annotated[str, Query(description="The id of the last event seen; else Last-Event-ID.", max_length=100)] = "",
) -> Response:
    """Server-sent events of the list of jobs."""
    follower = service_of(request).hub.jobs
    await follower.fresh()
    return _stream(request, follower, after)


def _stream(request: Request, follower: Follower, after: str) -> Response:
    last = request.headers.get("last-event-id") or after
    return service_of(request).stream(follower, last, request.state.who)


async def _of_job(
    request: Request, name: str, key: tuple[Hashable, ...], make: Callable[[FollowedJob], Any], *, live: bool = False
) -> Response:
    """A document of a job, made once for all who ask for it at the same time; `live` where it follows from more."""
    async with _malformed_named(request, name):
        follower = await service_of(request).hub.followed(name)
        followed: FollowedJob = follower.followed
        return await _cached(request, follower, (name, *key), lambda: encoded(make(followed)), live=live)


@asynccontextmanager
async def _malformed_named(request: Request, name: str) -> AsyncIterator[None]:
    """Says of a job whose row is malformed that it is, in the place of what reading it came to.

    Raises:
        RefusedError: it is.
    """
    try:
        yield
    except RefusedError:
        raise
    except Exception as error:
        listed: JobList = await service_of(request).hub.jobs.fresh()
        if name not in listed.malformed:
            raise
        message = f"the row of job {name!r} in the record is malformed; correct it or remove it in the database"
        raise RefusedError(409, "Malformed", message) from error


async def _cached(
    request: Request, follower: Follower, key: Hashable, make: Callable[[], bytes], *, live: bool = False
) -> Response:
    version = None if live else follower.version
    own = follower.feed.name, key  # A job that has a deleted one's name has another feed.
    body, tag = await service_of(request).documents.get(own, version, lambda: _tagged(make, version))
    if tag and request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "no-cache"})
    headers = {"ETag": tag, "Cache-Control": "no-cache"} if tag else {"Cache-Control": "no-store"}
    return Response(body, 200, headers, "application/json")


def _tagged(make: Callable[[], bytes], version: tuple[str, int] | None) -> tuple[bytes, str]:
    return make(), "" if version is None else f'"{version[0]}-{version[1]}"'
