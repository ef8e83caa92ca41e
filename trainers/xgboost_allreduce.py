"""XGBoost over its own collective: its trainer, and what each worker of its gangs runs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ray.train import ScalingConfig

from trainers import storage
from trainers.assignment import Assignment, Report, Segment
from trainers.channels import Channel, LabelRule, PlacedChannel, Table
from trainers.cluster import Cluster
from trainers.errors import ConfigurationError
from trainers.gang import WorkerContext, never
from trainers.gangs import Gangs
from trainers.scaling import WORKERS, check_alone, check_workers
from trainers.trainer import Trainer
from trainers.xgboost_booster import booster_parameters, load_booster, threads_of
from trainers.xgboost_halting import Looks, goes_on_exactly
from trainers.xgboost_labels import label_rules
from trainers.xgboost_parameters import ROUNDS, check_parameters, metric_names
from trainers.xgboost_ray_options import check_backend

_DEFAULT_KIND = ("quantile", 256)


class XGBoostTrainer(Trainer):
    """Distributed XGBoost: rows sharded over the workers, histograms summed by AllReduce.

    Hyperparameters are XGBoost's own, the number of rounds under any of `ROUNDS`, and `num_workers`, which goes before
    `scaling`'s. Every channel other than "train"
    is evaluated whole on each worker after each round, so that its metrics are exact for any number of workers.

    Args:
        scaling: see `Trainer`.
        hyperparameters: see `Trainer`.
        backend: "native" is XGBoost's own collective, on workers that stay warm; "xgboost_ray" is the package of
            that name, which starts its actors anew for every assignment.
        ray_params: fields of xgboost_ray's `RayParams`, for that backend alone; `trainers.xgboost_ray_options.FIELDS`
            names them.

    Raises:
        ConfigurationError: a value is wrong.
    """

    resource_names: ClassVar[tuple[str, ...]] = ROUNDS
    unit: ClassVar[str] = "round"
    suffix: ClassVar[str] = ".ubj"

    def __init__(
        self,
        *,
        scaling: ScalingConfig | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        backend: str = "native",
        ray_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.backend = backend
        self.ray_params = dict(ray_params or {})
        check_backend(backend, self.ray_params, scaling)
        super().__init__(scaling=scaling, hyperparameters=hyperparameters)

    @property
    def may_be_elastic(self) -> bool:
        """See `Trainer.may_be_elastic`."""
        return self.backend == "native"

    @property
    def warm(self) -> bool:
        """See `Trainer.warm`."""
        return self.backend == "native"

    @property
    def options(self) -> dict[str, Any]:
        """See `Trainer.options`."""
        return {} if self.backend == "native" else {"backend": self.backend, "ray_params": self.ray_params}

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`."""
        if "early_stopping_rounds" in hyperparameters:
            raise ConfigurationError(
                "early_stopping_rounds is not for this trainer: a tuner's strategy stops trials, and a single training "
                "runs all its rounds; leave it out"
            )
        check_workers(hyperparameters)
        if self.in_hand:
            check_alone(hyperparameters)
        if self.backend == "xgboost_ray" and hyperparameters.get(WORKERS) is not None:
            raise ConfigurationError(
                f"hyperparameter {WORKERS!r} is for backend 'native'; with 'xgboost_ray' every trial has the workers "
                "of ScalingConfig(num_workers=...)"
            )
        check_parameters({name: value for name, value in hyperparameters.items() if name != WORKERS})
        self._check_threads(hyperparameters)
        if self.backend == "xgboost_ray" and hyperparameters.get("tree_method") == "exact":
            raise ConfigurationError(
                "tree_method 'exact' is nothing that backend 'xgboost_ray' trains, on one worker either; "
                "use 'hist', or backend='native' with num_workers=1"
            )
        workers = self.workers_for(hyperparameters)
        if workers > 1 and hyperparameters.get("tree_method") == "exact":
            raise ConfigurationError(
                f"tree_method 'exact' does not distribute over {workers} workers; use 'hist', or num_workers=1"
            )

    def _check_threads(self, hyperparameters: Mapping[str, Any]) -> None:
        """Refuses more threads than a worker holds cores; in hand these may be all that the machine has."""
        said = (self.scaling.resources_per_worker or {}).get("CPU")
        held = None if self.in_hand and not said else max(1, int(said or 1))
        threads = threads_of(hyperparameters)
        if held is not None and threads > held:
            name = "nthread" if hyperparameters.get("nthread") is not None else "n_jobs"
            raise ConfigurationError(
                f"hyperparameter {name!r} is {threads}, and a worker holds {held} CPU{'s' if held > 1 else ''}; give "
                f"ScalingConfig(resources_per_worker={{'CPU': {threads}}}), or leave {name} out: all that a worker "
                "holds are used"
            )

    def metrics(self, channels: Iterable[str]) -> list[str]:
        """See `Trainer.metrics`."""
        given = self.hyperparameters.get("eval_metric")
        if given is None:
            raise ConfigurationError(
                "hyperparameters have no 'eval_metric', so nothing would be reported; give one, such as 'auc'"
            )
        names = metric_names(given)
        return [f"{channel}:{name}" for channel in channels if channel != "train" for name in names]

    def label_rules(self, channel: str, metric: str | None) -> tuple[LabelRule, ...]:
        """See `Trainer.label_rules`."""
        return label_rules(self.hyperparameters, metric, train=channel == "train")

    def program(self, channels: dict[str, PlacedChannel]) -> XGBoostProgram:
        """See `Trainer.program`."""
        return XGBoostProgram(channels)

    def start_gangs(
        self,
        name: str,
        channels: Mapping[str, Channel],
        on: Cluster,
        notify: Callable[[str], None],
        priority: int = 1,
        patient: bool = False,
    ) -> Gangs:
        """See `Trainer.start_gangs`."""
        if self.backend == "native":
            return super().start_gangs(name, channels, on, notify, priority, patient)
        # Imported here: workers of native gangs import this module, and need none of it.
        from trainers.draining import Notices
        from trainers.xgboost_ray_backend import XGBoostRayGangs

        placed = {channel: source.place(self.workers) for channel, source in channels.items()}
        notices = None if on.private else Notices()
        return XGBoostRayGangs(
            name, placed, self.scaling, self.ray_params, notify=notify, notices=notices, patient=patient
        )

    def load_model(self, checkpoint: str) -> Any:
        """The checkpoint as an `xgboost.Booster`."""
        return load_booster(checkpoint, {})

    def probe_obstacle(self) -> str:
        """See `Trainer.probe_obstacle`."""
        on_cpu = self.hyperparameters.get("device", "cpu") == "cpu"
        return super().probe_obstacle() if on_cpu else "it trains on a GPU"

    def exact_from(self, hyperparameters: Mapping[str, Any]) -> bool:
        """See `Trainer.exact_from`: a booster does not hold the random state of XGBoost's sampling."""
        return goes_on_exactly(hyperparameters)

    def load_code(self, checkpoint: str) -> str:
        """See `Trainer.load_code`."""
        if "://" in checkpoint:
            return ""
        return f"import xgboost\nmodel = xgboost.Booster(model_file={checkpoint!r})"


@dataclass(slots=True)
class _Session:
    """What an open worker holds between assignments."""

    context: WorkerContext
    collective: ExitStack
    matrices: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)


class XGBoostProgram:
    """Trains boosters in segments, on matrices and a collective that last as long as the gang.

    Every segment begins with a fresh `Booster` from the checkpoint, absolute iterations, and a seed drawn from the
    trial's seed and the rounds it has. A saved booster does not hold the random state of XGBoost's column and row
    sampling, so this is what makes a model depend on configuration, seed and rungs alone: not on whether it was
    paused, moved or resumed on the way.

    Args:
        channels: "train" is sharded over the workers by rows; every other channel is evaluated, whole, each round.
    """

    def __init__(self, channels: dict[str, PlacedChannel]) -> None:
        self._channels = channels
        self._session: _Session | None = None

    def open(self, context: WorkerContext) -> dict[str, float]:
        """Loads this worker's rows, joins the collective and builds the default matrices."""
        started = time.perf_counter()
        _import_xgboost(whole=context.in_hand)
        imported = time.perf_counter()
        # Before joining: a rank whose data is bad then leaves no peer waiting in a collective.
        train = self._channels["train"].read(context.rank, context.world_size)
        loaded = time.perf_counter()
        self._session = _Session(context, _join(context))
        joined = time.perf_counter()
        self._session.matrices[_DEFAULT_KIND] = self._build(*_DEFAULT_KIND, train)
        built = time.perf_counter()
        return {
            "import": imported - started,
            "load": loaded - imported,
            "join": joined - loaded,
            "build": built - joined,
        }

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        """Boosts from `assignment.start` to `assignment.stop` rounds; see `Program.train`."""
        arrived = time.perf_counter()
        session = self._opened()
        matrices = self._matrices(assignment.hyperparameters)
        names = [name for name in matrices if name != "train"]
        # By number, since XGBoost puts a hyphen between a channel's name and a metric's, and either may hold some.
        evaluated = [(matrices[name], str(number)) for number, name in enumerate(names)]
        parameters = booster_parameters(assignment, session.context.cpus)
        booster = load_booster(assignment.checkpoint, parameters, list(matrices.values()))
        read = time.perf_counter()
        first_step_at = time.time()
        reports = []
        looks = Looks(halted, rank=session.context.rank, world_size=session.context.world_size, start=assignment.start)
        for iteration in range(assignment.start, assignment.stop):
            booster.update(matrices["train"], iteration)
            report = Report(step=iteration + 1, metrics=_metrics(booster.eval_set(evaluated, iteration), names))
            reports.append(report)
            on_report(report)
            if report.step < assignment.stop and looks.halt(report.step):
                break
        trained = time.perf_counter()
        size = 0
        if session.context.rank == 0:
            raw = bytes(booster.save_raw("ubj"))
            storage.write(assignment.saved_at(reports[-1].step), raw)
            size = len(raw)
        return Segment(
            reports=tuple(reports),
            checkpoint=assignment.saved_at(reports[-1].step),
            checkpoint_bytes=size,
            training_seconds=trained - read,
            checkpointing_seconds=read - arrived + time.perf_counter() - trained,
            first_step_at=first_step_at,
        )

    def close(self) -> None:
        """Leaves the collective."""
        session = self._opened()
        session.collective.close()
        self._session = None

    def _opened(self) -> _Session:
        assert self._session is not None, "a gang opens its program before it serves"
        return self._session

    def _matrices(self, hyperparameters: dict[str, Any]) -> dict[str, Any]:
        """The matrices that a configuration needs, built once: they depend on the data, the method and `max_bin`."""
        session = self._opened()
        exact = (
            hyperparameters.get("tree_method") in ("exact", "approx") or hyperparameters.get("booster") == "gblinear"
        )
        key = ("plain", 0) if exact else ("quantile", int(hyperparameters.get("max_bin") or _DEFAULT_KIND[1]))
        if key not in session.matrices:
            train = self._channels["train"].read(session.context.rank, session.context.world_size)
            session.matrices[key] = self._build(*key, train)
        return session.matrices[key]

    def _build(self, kind: str, max_bin: int, train: Table) -> dict[str, Any]:
        import xgboost

        context = self._opened().context
        matrices: dict[str, Any] = {}
        for name in ["train", *(name for name in self._channels if name != "train")]:
            table = train if name == "train" else self._channels[name].read_whole()
            arguments: dict[str, Any] = {
                "data": table.features,
                "label": table.labels,
                "feature_names": None if table.feature_names is None else list(table.feature_names),
                "nthread": context.cpus,
                "enable_categorical": True,
            }
            if kind == "plain":
                matrices[name] = xgboost.DMatrix(**arguments)
            else:
                matrices[name] = xgboost.QuantileDMatrix(**arguments, max_bin=max_bin, ref=matrices.get("train"))
        return matrices


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


def _metrics(line: str, names: Sequence[str]) -> dict[str, float]:
    """XGBoost's line of one round, `[3] 0-auc:0.77` with tabs, as {"validation:auc": 0.77}."""
    metrics = {}
    for part in line.split("\t")[1:]:
        name, _, value = part.rpartition(":")
        number, _, metric = name.partition("-")
        metrics[f"{names[int(number)]}:{metric}"] = float(value)
    return metrics
