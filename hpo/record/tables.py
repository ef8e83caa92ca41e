"""Tables of the record, and their rows: jobs, trials, reports, billed seconds, lines, additions and acts.

Neither JSON nor SQL has a portable NaN: `encode` gives JSON words for what is not finite, and float columns hold NULL.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import sqlalchemy as sa

from trainers.checkpoint import Manifest, sized
from trainers.errors import ConfigurationError

JobStatus = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]
TrialStatus = Literal["Pending", "Running", "Paused", "Completed", "Stopped", "Diverged", "Failed"]
LedgerKind = Literal["starting", "training", "checkpointing", "idle"]
ActKind = Literal[
    "created",
    "cloned",
    "stopped",
    "resumed",
    "raised",
    "trial_added",
    "trial_stopped",
    "tagged",
    "deployed",
    "undeployed",
    "registered",
    "deleted",
]

LOST_AFTER = 60.0
"""Seconds of silence after which a job's writer is taken for dead."""

HEARD_BEFORE = "heard_before"
"""Key of a job's `driver` until that has written something: when the driver before it was last heard of."""

MAX_TRIAL_RUNTIME, MAX_TRIAL_WAIT = "max_trial_runtime", "max_trial_wait"
"""Limits of a trial's time: options of a job, and by what trials were stopped that no person stopped."""

POINT = "point"
"""What gave the values of a trial that has them from the job's points to evaluate."""

_IN_NO_COLUMN = {"column": False}
"""What marks a field that is worked out as a row is read."""

_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A tuning job: `spec` holds all it was made with.

    `heartbeat` is when its writer was last heard of, or the job was made, by the database's clock, and `silent` the
    seconds from then until the row was read, by that clock too: those of machines may differ. All other times are of
    the driver's clock, which `driver` says to be "ahead" by so many seconds; `create_job` sets `heartbeat` itself.

    `owner` is the user it is of. `lease` is the id of the writer that holds the job, empty where none does. `driver` is
    where that one runs, or the last one ran: see `hpo.record.lease.this_process`; where known also "submission_id" and
    "address" of the Ray job that it is, and "log", the file of its output.
    """

    name: str
    status: JobStatus = "InProgress"
    reason: str = ""
    created_at: float
    ended_at: float | None = None
    heartbeat: float = 0.0
    spec: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    owner: str = ""
    lease: str = ""
    driver: dict[str, Any] = field(default_factory=dict)
    silent: float = field(default=0.0, compare=False, metadata=_IN_NO_COLUMN)

    @property
    def lost(self) -> bool:
        """Whether it should be running and its writer has not been heard of for a minute."""
        return self.status in ("InProgress", "Stopping") and self.silent > LOST_AFTER

    @property
    def heard(self) -> float:
        """When its writer was last heard of, by the writer's own clock."""
        return self.heartbeat + float(self.driver.get("ahead", 0.0))

    @property
    def held_until(self) -> float:
        """When the gangs in its summary were last heard of: taking the lease alone tells nothing of them."""
        return float(self.driver.get(HEARD_BEFORE, self.heard))

    @property
    def now(self) -> float:
        """When the row was read, by its writer's clock."""
        return self.heard + self.silent


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A trial: `number` is its place in the order of suggestion, from 0; `resource` the units it has reached.

    `checkpoint` is empty where it was dropped, and `checkpoint_bytes` then says what it took; `files` are the sizes and
    digests of its files, empty where an older Warmband wrote the row. `logs` names the output of the worker that failed
    it, as "address:path". `failure_reason` says why it failed, or diverged; what diverged has no objective. `details`
    is what happened beside the metrics, over all of it. `turns` say when it was chosen and told, in a job whose
    decisions follow from that, as `hpo.search.Turn` has it; empty elsewhere. `given` is what gave some or all of its
    values, where that was not the searcher: `POINT`, or the id of the `AdditionRow` that it took.

    `believed` is what the searcher's model expected of it when it suggested it, with the `results` that it had by then:
    `by` is "model", or "random" where it was not asked yet. `score` and `deviation` are mean and standard deviation at
    the largest resource, in normal scores of ranks, and `spread` the deviation of a measured value, noise included.
    `middle`, `low` and `high` are the median and the bounds of the 80% interval of that value, by the quantiles of what
    the job had seen. It is empty of a trial without: where a person gave its values, of a fork, or of another searcher.

    One that began from another's checkpoint has that one as `parent`, and in `parent_resource` the units there, behind
    which its own reports begin; `replaces` is the trial that ended for it, if one did. One that another trained the
    beginning of has that one as `parent`, too, and has all reports. All are empty, or 0, elsewhere.

    `stopped` is empty unless a person, or a limit of its time, stopped it: it says `by` whom or which, and whether its
    strategy had been `told` of all its units by then, as `hpo.search.Stopped` has it.
    """

    job: str
    trial_id: str
    number: int
    status: TrialStatus = "Pending"
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    bracket: int | None = None
    resource: int = 0
    objective: float | None = None
    best_objective: float | None = None
    best_resource: int | None = None
    checkpoint: str = ""
    checkpoint_bytes: int = 0
    failure_reason: str = ""
    traceback: str = ""
    attempts: int = 0
    started_at: float | None = None
    ended_at: float | None = None
    logs: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    turns: dict[str, Any] = field(default_factory=dict)
    given: str = ""
    believed: dict[str, Any] = field(default_factory=dict)
    parent: str = ""
    parent_resource: int = 0
    replaces: str = ""
    stopped: dict[str, Any] = field(default_factory=dict)

    @property
    def stopped_by(self) -> str:
        """The person, or the limit of its time, that stopped it; empty where neither did."""
        return str(self.stopped.get("by", ""))

    @property
    def given_as(self) -> str:
        """What gave its values, in a word: "point" or "added"; empty where the searcher suggested all."""
        return self.given if self.given in ("", POINT) else "added"

    @property
    def origin(self) -> str:
        """The checkpoint that it began from, in words, such as "job-003 at 10"; empty if it began from nothing."""
        return f"{self.parent} at {self.parent_resource}" if self.parent else ""

    @property
    def manifest(self) -> Manifest:
        """The files of its checkpoint; of an older Warmband's, its one file without a digest."""
        return Manifest.from_json(self.files) if self.files else sized(self.checkpoint, self.checkpoint_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """One unit of a trial's resource. `objective` is None where it is not finite; `metrics` say what it was."""

    job: str
    trial_id: str
    step: int
    objective: float | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """Billed worker-seconds of a gang; `trial_id` is empty for the gang's own. The writer gives the `id`.

    `workers` is the gang's size, 0 where an older Warmband wrote the row: what it bills lasted
    `worker_seconds / workers` seconds, until `at`. The rows of a gang follow each other without gaps.
    """

    job: str
    trial_id: str = ""
    gang: str
    kind: LedgerKind
    worker_seconds: float
    at: float
    id: str = ""
    workers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """A line that a job's driver said, for whoever is not at its terminal. The writer gives the `id`."""

    job: str
    text: str
    at: float
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditionRow:
    """Values that a person gave for one of the next trials of a job; the trial that took them names the `id`."""

    job: str
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    at: float
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRow:
    """A thing that a person did to a job.

    `by` is who: a user of the machine, or the name of a server's token; `door` is how: "Python", "command line", "REST"
    and so on. `arguments` say what, by kind. `at` is unix seconds, by the database's clock where that writes it.
    `gone_at` is when the job was deleted, whose name another may have had since; None while it is there.
    """

    job: str
    kind: ActKind
    by: str
    door: str
    arguments: dict[str, Any] = field(default_factory=dict)
    at: float
    id: str
    gone_at: float | None = None


METADATA = sa.MetaData()
_TYPES: dict[Any, Any] = {int: sa.BigInteger, float: sa.Float, dict[str, Any]: sa.JSON}


def _table(name: str, row: type, *keys: str) -> sa.Table:
    """The table that holds a dataclass: a column a field, NULL where None may be, words where they are spelled out."""
    hints = get_type_hints(row)
    columns = []
    for each in fields(row):
        if not each.metadata.get("column", True):
            continue
        options = get_args(hint := hints[each.name])
        optional = NoneType in options
        kind = _TYPES.get(options[0] if optional else hint, sa.Text)
        info = {"words": options} if get_origin(hint) is Literal else {}
        key = each.name in keys
        columns.append(sa.Column(each.name, kind, primary_key=key, autoincrement=False, nullable=optional, info=info))
    return sa.Table(name, METADATA, *columns)


JOBS = _table("jobs", JobRow, "name")
TRIALS = _table("trials", TrialRow, "job", "trial_id")
REPORTS = _table("reports", ReportRow, "job", "trial_id", "step")
# The writer makes the id, not the database: a batch that is written again must not bill again.
LEDGER = _table("ledger", LedgerRow, "job", "id")
LINES = _table("lines", LineRow, "job", "id")
ADDITIONS = _table("additions", AdditionRow, "job", "id")
OF_JOB = (TRIALS, REPORTS, LEDGER, LINES, ADDITIONS)
"""The tables whose rows are each of a job, and go with it."""
ACTS = _table("acts", ActRow, "job", "id")
"""What persons did to jobs: it outlives them."""
MARK = sa.Table("warmband_version", METADATA, sa.Column("version_num", sa.String(32), primary_key=True))
"""The schema's version, as Alembic keeps it."""
VERSION = sa.Table("schema_version", METADATA, sa.Column("version", sa.Integer, primary_key=True))
"""Where it was kept up to 4. It says 5 ever since, so that a Warmband from before Alembic refuses the store."""


def encode(value: Any) -> Any:
    """A value as JSON: floats that are not finite become words, tuples and arrays lists.

    Raises:
        ConfigurationError: it holds something else than numbers, text, booleans, None, lists and dicts.
    """
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else "NaN" if math.isnan(value) else _NOT_FINITE[1 + (value < 0)]
    if isinstance(value, str):
        # A backslash tells text that reads like one of the words from the number.
        return f"\\{_text(value)}" if value.lstrip("\\") in _NOT_FINITE else _text(value)
    if isinstance(value, Mapping):
        return {_text(str(key)): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return encode(value.tolist())
    raise ConfigurationError(
        f"{value!r} is a {type(value).__name__}; the store keeps numbers, text, booleans, None, lists and dicts"
    )


def decode(value: Any) -> Any:
    """The reverse of `encode`."""
    if isinstance(value, str):
        return float(value) if value in _NOT_FINITE else value[1:] if value.lstrip("\\") in _NOT_FINITE else value
    if isinstance(value, dict):
        return {key: item if type(item) is float else decode(item) for key, item in value.items()}
    return [decode(item) for item in value] if isinstance(value, list) else value


def parse(text: str | bytes) -> Any:
    """Return the value of a column's JSON, decoded as `decode` does it.

    A job of 20,000 trials has 160,000 such columns, most of them empty: what needs no decoding is not walked through.

    Raises:
        ValueError: it is no JSON.
    """
    if isinstance(text, bytes):
        text = text.decode()
    if text == "{}":
        return {}
    value = json.loads(text)
    return decode(value) if 'NaN"' in text or 'Infinity"' in text else value


def checked(table: sa.Table) -> Callable[[Any], dict[str, Any]]:
    """A function from a row of a table's dataclass to the values of its columns.

    They are checked on the way, since a row that the database refuses would block all behind it. What depends on the
    column alone is done here, once, since a job of 10,000 trials has half a million reports.

    Returns:
        A function of the row, which raises ConfigurationError where a value is wrong.
    """
    names = [column.name for column in table.columns]
    holders = [holder(column) for column in table.columns]
    fields_of = operator.attrgetter(*names)

    def values(row: Any) -> dict[str, Any]:
        return {name: hold(value) for name, hold, value in zip(names, holders, fields_of(row), strict=True)}

    return values


def holder(column: sa.Column[Any]) -> Callable[[Any], Any]:
    """A function from a value to its column's; it raises ConfigurationError for a value that does not fit."""
    kind, nullable, words = column.type, column.nullable, column.info.get("words")
    convert: Callable[[Any], Any] = _text_of
    if isinstance(kind, sa.JSON):
        convert = _json
    elif isinstance(kind, sa.Float):
        convert = _float
    elif isinstance(kind, sa.Integer):
        convert = _integer

    def hold(value: Any) -> Any:
        try:
            held = convert(value)
            if held is None and not nullable:
                raise ValueError("it has to be there, and finite")
            if words is not None and held not in words:
                raise ValueError(f"give one of {', '.join(words)}")
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"{column.table.name}.{column.name} is {value!r}: {error}") from error
        return held

    return hold


def _json(value: Any) -> Any:
    return encode(dict(value))


def _float(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _integer(value: Any) -> int | None:
    return int(operator.index(value)) if value is not None else None


def _text_of(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("give text")
    return _text(value)


def _text(value: str) -> str:
    """Text that every database takes: no NUL and no half of a surrogate pair, which a traceback may hold."""
    if value.isascii() and "\0" not in value:
        return value
    return value.replace("\0", "\ufffd").encode(errors="replace").decode()
