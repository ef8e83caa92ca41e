"""The program of an XGBoost gang's workers."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from trainers import steady
from trainers.channels import BASE_MARGIN, WEIGHT, PlacedChannel, Table
from trainers.checkpoint import UNKNOWN
from trainers.errors import DataError, DivergedError, GangError, StorageError, WarmbandError, is_away
from trainers.gangs import Assignment, Report, Segment, WorkerContext, never, one_line
from trainers.process import Scratch, trim
from trainers.xgboost.bins import shared_bins
from trainers.xgboost.booster import CPU, booster_parameters, check_device, device_of, load_booster, note_preparation
from trainers.xgboost.labels import check_margins, check_names, check_said
from trainers.xgboost.matrices import (
    BLOCK_BYTES,
    KEPT,
    PLAIN,
    SCORED_BYTES,
    Kind,
    Spooled,
    check_method,
    has_categories,
    kind_of,
    matrix,
)
from trainers.xgboost.rounds import (
    NONE,
    BestRound,
    Evaluation,
    Looks,
    OwnFunctions,
    Peers,
    Share,
    Sum,
    classes_of,
    sum_over,
)


@dataclass(slots=True)
class _Session:
    """State of an open worker between assignments."""

    context: WorkerContext
    collective: ExitStack
    scratch: Scratch | None
    """Where rows are on disk, if they are."""
    add: Sum
    said: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By channel; see `trainers.channels.Table`."""
    categories: bool = False
    """Some features have categories."""
    margins: dict[str, int] = field(default_factory=dict)
    """By channel, how many a row has."""
    shares: dict[str, Share] = field(default_factory=dict)
    matrices: dict[Kind, Any] = field(default_factory=dict)
    """To train on; those used last stand last."""
    spooled: Spooled | None = None
    """The rows to train on, where they are on disk."""
    whole: dict[str, Any] = field(default_factory=dict)
    """All rows of each channel that is evaluated, where a metric takes that."""

    @property
    def peers(self) -> Peers:
        """This worker among the others."""
        return Peers(rank=self.context.rank, world_size=self.context.world_size)


class XGBoostProgram:
    """Trains boosters in segments, on matrices and a collective that last as long as the gang.

    Every segment begins with a fresh `Booster` from the checkpoint, absolute iterations, and a seed drawn from the
    trial's seed and the rounds it has. A saved booster does not hold the random state of XGBoost's column and row
    sampling, so this is what makes a model depend on configuration, seed and rungs alone: not on whether it was
    paused, moved or resumed on the way.

    Args:
        channels: "train" is sharded over the workers by rows, and so is every other, which is evaluated each round.
        hyperparameters: what all its trials have; it says which matrices to build before the first of them.
        use_gpu: each worker holds a GPU, which it trains on.
        own: an objective and metrics of the user's own.
        external_memory: features are on disk, and in memory a block at a time.
    """

    def __init__(
        self,
        channels: dict[str, PlacedChannel],
        hyperparameters: Mapping[str, Any] | None = None,
        *,
        use_gpu: bool = False,
        own: OwnFunctions = NONE,
        external_memory: bool = False,
    ) -> None:
        self._channels = channels
        self._static = dict(hyperparameters or {})
        self._use_gpu = use_gpu
        self._own = own
        self._external_memory = external_memory
        self.peers_gpus = use_gpu
        """See `trainers.gangs.sees_peers_gpus`."""
        self._session: _Session | None = None

    def open(self, context: WorkerContext) -> dict[str, float]:
        """Loads this worker's rows, joins the collective and builds the matrices that most trials need."""
        if not self._external_memory:
            return self._open(context, None)
        scratch = Scratch("rows")
        try:
            return self._open(context, scratch)
        except BaseException:
            scratch.close()
            raise

    def _open(self, context: WorkerContext, scratch: Scratch | None) -> dict[str, float]:
        started = time.perf_counter()
        _import_xgboost(whole=context.in_hand)
        if self._use_gpu:
            check_device(device_of({}, use_gpu=True, gpus=context.gpus))
        imported = time.perf_counter()
        # Before joining: a rank whose data is bad then leaves no peer waiting in a collective.
        shards = {name: self._rows(name, context.rank, context.world_size, scratch) for name in self._channels}
        train = shards.pop("train")
        check_names("train", train.feature_names)  # A Ray Dataset's are known here at the earliest.
        trim()
        loaded = time.perf_counter()
        self._session = _Session(context, _join(context), scratch, sum_over(context.world_size))
        joined = time.perf_counter()
        rows = {"train": train, **shards}
        self._session.said = {name: tuple(of_channel.said) for name, of_channel in rows.items()}
        self._session.margins = {name: _margins(of_channel) for name, of_channel in rows.items()}
        self._session.categories = bool(train.coding if isinstance(train, Spooled) else has_categories(train.features))
        self._check_all("train", train)
        self._session.spooled = train if isinstance(train, Spooled) else None
        kind = kind_of(self._static)
        bins = self._bins(kind, train)
        binned = time.perf_counter()
        self._session.matrices[kind] = self._matrix(kind, train, bins)
        if self._channels["train"].measured:
            again = self._rows("train", context.rank, context.world_size, scratch) if scratch else train
            shards = {"train": again, **shards}
        self._share_out(shards)
        self._evaluation(self._static)
        del train, shards, rows, bins
        trim()
        built = time.perf_counter()
        return {
            "import": imported - started,
            "load": loaded - imported,
            "join": joined - loaded,
            "bins": binned - joined,
            "build": built - binned,
        }

    def _rows(self, name: str, rank: int, world_size: int, scratch: Scratch | None) -> Table | Spooled:
        """A rank's rows of a channel; of a world of 1 all, whatever the gang's size."""
        channel = self._channels[name]
        if scratch:
            return Spooled(channel.blocks(rank, world_size, BLOCK_BYTES), scratch.path)
        return channel.read(rank, world_size)

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        """Boosts from `assignment.start` to `assignment.stop` rounds; see `Program.train`.

        Raises:
            GangError: the rows on disk are not there any more; another gang writes them anew.
            StorageError: the same in hand, where there is no other gang.
        """
        try:
            return self._train(assignment, on_report, halted)
        except Exception as error:
            scratch = self._opened().scratch
            known = isinstance(error, WarmbandError) or is_away(error)
            if known or scratch is None or scratch.path not in str(error):
                raise
            kind = StorageError if self._opened().context.in_hand else GangError
            raise kind(
                f"rows for external_memory cannot be read from {scratch.path} any more: {one_line(error)}; keep what "
                "clears temporary files away from it, or give TMPDIR another folder"
            ) from error

    def _train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool]
    ) -> Segment:
        arrived = time.perf_counter()
        session = self._opened()
        for name, roles in session.said.items():  # The objective may be tuned.
            check_said(name, roles, assignment.hyperparameters, session.context.world_size)
        if session.categories:
            check_method("train", assignment.hyperparameters)
        check_margins(session.margins, assignment.hyperparameters)
        train = self._matrix_of(assignment.hyperparameters)
        evaluation = self._evaluation(assignment.hyperparameters)
        context = session.context
        parameters = booster_parameters(assignment, context.cpus, use_gpu=self._use_gpu, gpus=context.gpus)
        parameters.pop("eval_metric", None)
        if not self._use_gpu and (device := parameters.get("device", CPU)) != CPU:
            check_device(device)
        parameters |= evaluation.told
        place = session.context.storage
        read_it = partial(place.read, manifest=assignment.manifest)
        matrices, known = [train, *evaluation.matrices], assignment.manifest.has_digests
        booster = load_booster(assignment.checkpoint, parameters, matrices, read_it, known=known)
        note_preparation(booster, self._channels["train"].preparation)
        read = time.perf_counter()
        first_step_at = steady.now()
        best = BestRound.of(booster, assignment)
        reports: list[Report] = []

        def note(report: Report) -> None:
            reports.append(report)
            on_report(report)

        details: dict[str, Any] = {}
        if best is None or not best.ended:
            update = partial(self._own.update, booster, train, session.peers)
            self._boost(assignment, booster, update, evaluation, best, note, halted)
            details = best.details if best else {}
        if best is not None and best.ended:
            for step in range(reports[-1].step if reports else assignment.start, assignment.stop):
                note(Report(step=step + 1, metrics=best.metrics))
        trained = time.perf_counter()
        saved, manifest = assignment.saved_at(reports[-1].step), UNKNOWN
        if session.context.rank == 0:
            manifest = place.write(saved, best.packed(booster) if best else bytes(booster.save_raw("ubj")))
        return Segment(
            reports=tuple(reports),
            checkpoint=saved,
            manifest=manifest,
            training_seconds=trained - read,
            checkpointing_seconds=read - arrived + time.perf_counter() - trained,
            first_step_at=first_step_at,
            details=details,
        )

    def _boost(
        self,
        assignment: Assignment,
        booster: Any,
        update: Callable[[int], None],
        evaluation: Evaluation,
        best: BestRound | None,
        note: Callable[[Report], None],
        halted: Callable[[], bool],
    ) -> None:
        """Rounds until the assignment's stop, a halt, or the end of patience, whose round is not reported."""
        context = self._opened().context
        looks = Looks(halted, rank=context.rank, world_size=context.world_size, start=assignment.start)
        for iteration in range(assignment.start, assignment.stop):
            update(iteration)
            report = Report(step=iteration + 1, metrics=evaluation(booster, iteration))
            if said := assignment.divergence(report):  # On every worker: metrics are alike on all of them.
                note(report)
                raise DivergedError(said)
            if best is not None and best.take(report, booster):
                return
            note(report)
            if report.step < assignment.stop and looks.halt(report.step):
                return

    def close(self) -> None:
        """Leaves the collective."""
        session = self._opened()
        session.collective.close()
        self._session = None
        if session.scratch:
            # XGBoost removes a matrix's pages itself, and complains where they are gone.
            for matrices in (session.matrices, session.shares, session.whole):
                matrices.clear()
            session.scratch.close()

    def _opened(self) -> _Session:
        assert self._session is not None, "a gang opens its program before it serves"
        return self._session

    def _matrix_of(self, hyperparameters: dict[str, Any]) -> Any:
        """The matrix that a configuration is trained on: it depends on the data, the method and `max_bin`."""
        session, kind = self._opened(), kind_of(hyperparameters)
        held = session.matrices
        if kind in held:
            held[kind] = held.pop(kind)
        else:
            while len(held) >= KEPT:
                del held[next(iter(held))]
            context = session.context
            rows = session.spooled or self._channels["train"].read(context.rank, context.world_size)
            held[kind] = self._matrix(kind, rows, self._bins(kind, rows))
            del rows
            trim()
        return held[kind]

    def _bins(self, kind: Kind, rows: Table | Spooled) -> Any:
        """The bins of rows to train on; see `shared_bins`. Every worker calls it."""
        session = self._opened()
        if kind == PLAIN:
            return None
        return shared_bins(kind, rows, self._channels["train"], session.peers, session.context.cpus)

    def _matrix(self, kind: Kind, rows: Table | Spooled, bins: Any = None) -> Any:
        """Rows as XGBoost holds them; every worker calls it, and looks for room before any of them writes pages.

        Raises:
            StorageError: one of them finds no room; on every worker.
        """
        session = self._opened()
        if session.scratch:
            beside = session.context.local_world_size
            lacking = rows.lacks_room(kind[1], beside) if isinstance(rows, Spooled) else ""
            if lacking := session.peers.first(lacking):
                raise StorageError(lacking)
        return matrix(kind, rows, session.context.cpus, bins)

    def _evaluation(self, hyperparameters: dict[str, Any]) -> Evaluation:
        session = self._opened()

        def whole() -> dict[str, Any]:
            if session.context.world_size == 1:
                return {name: share.matrix for name, share in session.shares.items()}
            if not session.whole:
                # Not in bins: a model may come from a gang of another size, which had others.
                for name in session.shares:
                    if session.scratch:
                        blocks = self._channels[name].blocks(0, 1, BLOCK_BYTES)
                        rows: Table | Spooled = Spooled(blocks, session.scratch.path)
                    else:
                        rows = self._channels[name].read_whole()
                    session.whole[name] = self._matrix_to_score(rows)
            return session.whole

        return Evaluation(hyperparameters, session.shares, whole, session.add, peers=session.peers, own=self._own)

    def _matrix_to_score(self, rows: Table | Spooled) -> Any:
        """Rows as they are, not in bins: XGBoost predicts them twice as fast so."""
        few = rows.whole() if isinstance(rows, Spooled) and rows.nbytes <= SCORED_BYTES else rows
        made = self._matrix(PLAIN, few)
        if isinstance(rows, Spooled):
            rows.forget()
        return made

    def _share_out(self, shards: Mapping[str, Table | Spooled]) -> None:
        """Takes this worker's rows of the channels that are evaluated."""
        session = self._opened()
        context = session.context
        for name, rows in shards.items():
            self._check_all(name, rows)
            # Copies, which do not hold on to the features that an object of Ray's store has beside them.
            labels, said = np.array(rows.labels), {role: np.array(numbers) for role, numbers in rows.said.items()}
            made = self._matrix_to_score(rows)
            session.shares[name] = Share.of(made, labels, context.rank, context.world_size, session.add, said)

    def _check_all(self, name: str, table: Table | Spooled) -> None:
        """Checks of a channel's weights and labels what a shard does not tell; a worker alone has checked labels."""
        session, channel = self._opened(), self._channels[name]
        if WEIGHT in table.said and not session.add(np.array([(table.said[WEIGHT] > 0).sum()])).any():
            raise DataError(f"channel {name!r}: every weight is 0, so no row counts; give some a weight above 0")
        rank, world_size = session.context.rank, session.context.world_size
        if world_size > 1 and channel.classes > 1:
            channel.check_classes(classes_of(table.labels, channel.classes, rank, world_size, session.add))


def _margins(rows: Table | Spooled) -> int:
    """How many margins a row has."""
    margins = rows.said.get(BASE_MARGIN)
    return 0 if margins is None else 1 if margins.ndim == 1 else margins.shape[1]


def _import_xgboost(*, whole: bool) -> None:
    """Imports XGBoost; if not `whole`, without scikit-learn, its companion, which takes four fifths of the time."""
    if whole or "xgboost" in sys.modules or "sklearn" in sys.modules:
        import xgboost

        return
    sys.modules["sklearn"] = None  # type: ignore[assignment]  # Python's own way to say that it is not there
    try:
        import xgboost  # noqa: F401
    finally:
        del sys.modules["sklearn"]


def _join(context: WorkerContext) -> ExitStack:
    """The collective of a gang's workers, to be closed; a worker alone has no peers to join."""
    from xgboost.collective import CommunicatorContext

    joined = ExitStack()
    if context.world_size > 1:
        tracker = _start_tracker(context) if context.rank == 0 else None
        joined.callback(lambda: tracker)  # It has to live as long as the collective.
        arguments = context.broadcast(tracker.worker_args() if tracker else None)
        # The tracker hands out ranks in the order of the task ids, so that XGBoost's ranks are the gang's.
        joined.enter_context(CommunicatorContext(**arguments, dmlc_task_id=f"{context.rank:08d}"))
    return joined


def _start_tracker(context: WorkerContext) -> Any:
    from xgboost.tracker import RabitTracker

    tracker = RabitTracker(n_workers=context.world_size, host_ip=context.node_ip, sortby="task")
    tracker.start()
    threading.Thread(target=tracker.wait_for, name="xgboost-tracker", daemon=True).start()
    return tracker
