"""The trainer of XGBoost over its own collective."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from ray.train import ScalingConfig

from trainers.channels import ROLES, SHARDED, WHOLE, Channel, LabelRule, PlacedChannel, with_days
from trainers.cluster import Cluster
from trainers.errors import ConfigurationError, WarmbandError
from trainers.gangs import WORKERS, Gangs, check_alone, check_gpu_parts, check_workers
from trainers.trainer import Trainer
from trainers.tunable import Tunable
from trainers.xgboost.booster import CPU, device_of, load_booster, preparation_of, threads_of
from trainers.xgboost.checks import check_parameters
from trainers.xgboost.constraints import check_constraints
from trainers.xgboost.labels import (
    check_margins,
    check_names,
    check_said,
    check_several,
    check_text_labels,
    label_rules,
)
from trainers.xgboost.matrices import as_model_knows, check_categories, check_channel, check_external, check_on_disk
from trainers.xgboost.parameters import FIXED, PATIENCE, ROUNDS, maximized, metric_names, well_known
from trainers.xgboost.program import XGBoostProgram
from trainers.xgboost.ray_backend import check_backend
from trainers.xgboost.rounds import (
    METRICS,
    OBJECTIVE,
    Function,
    OwnFunctions,
    goes_on_exactly,
    handed_out,
    loading,
    unallowed,
)
from trainers.xgboost.tunable import USUAL_ROUNDS, tunable


class XGBoostTrainer(Trainer):
    """Distributed XGBoost: rows sharded over the workers, histograms summed by AllReduce.

    Hyperparameters are XGBoost's own, the number of rounds under any of `ROUNDS`, and `num_workers`, which goes before
    `scaling`'s. Every channel other than "train" is evaluated after each round; its metrics are exact for any number of
    workers: see `trainers.xgboost.rounds.evaluation`. Columns are cut into the same bins on any number of workers: see
    `trainers.xgboost.bins`.

    Args:
        scaling: see `Trainer`.
        hyperparameters: see `Trainer`.
        backend: "native" is XGBoost's own collective, on workers that stay warm; "xgboost_ray" is the package of
            that name, which starts its actors anew for every assignment.
        ray_params: fields of xgboost_ray's `RayParams`, for that backend alone; `FIELDS` of
            `trainers.xgboost.ray_backend.options` names them.
        objective_function: an objective of yours, `obj(predt, dtrain) -> (grad, hess)` as for `xgboost.train`, of
            margins; or its name, "module:name". On several workers each is given its own rows.
        metric_functions: metrics of yours, `custom_metric(predt, dtrain) -> (name, value)`, or their names; beside
            those of `eval_metric`, and exact for any number of workers.
        external_memory: workers hold features on disk, and in memory a block at a time: for rows that are larger than
            their memory. It is for files and Ray Datasets, method "hist" or "approx", and trees.

    Raises:
        ConfigurationError: a value is wrong.
    """

    resource_names: tuple[str, ...] = ROUNDS
    fixed_names: tuple[str, ...] = FIXED
    unit: str = "round"
    suffix: ClassVar[str] = ".ubj"
    code_options: ClassVar[tuple[str, ...]] = (OBJECTIVE, METRICS)

    def __init__(
        self,
        *,
        scaling: ScalingConfig | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        backend: str = "native",
        ray_params: Mapping[str, Any] | None = None,
        objective_function: Function | str | None = None,
        metric_functions: Sequence[Function | str] | None = None,
        external_memory: bool = False,
    ) -> None:
        self._own = OwnFunctions.of(objective_function, metric_functions)
        self.backend = backend
        self.external_memory = external_memory
        self.ray_params = dict(ray_params or {})
        check_backend(backend, self.ray_params, scaling)
        if self._own and backend == "xgboost_ray":
            raise ConfigurationError(f"{next(iter(self._own.names))} is for backend 'native'; leave out one of the two")
        check_external(external_memory, backend, scaling)
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
        if self.backend == "native":
            return {**self._own.names, **({"external_memory": True} if self.external_memory else {})}
        return {"backend": self.backend, "ray_params": self.ray_params}

    @property
    def arguments(self) -> dict[str, Any]:
        """See `Trainer.arguments`."""
        return {**self.options, **self._own.arguments}

    @classmethod
    def restored(
        cls,
        scaling: ScalingConfig,
        hyperparameters: Mapping[str, Any],
        options: Mapping[str, Any],
        *,
        allow_code: bool,
    ) -> Self:
        """See `Trainer.restored`."""
        known = options if allow_code else unallowed(options)
        return super().restored(scaling, hyperparameters, known, allow_code=allow_code)

    takes_roles = ROLES
    takes_sparse = True

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`."""
        if self.backend == "xgboost_ray" and hyperparameters.get(PATIENCE) is not None:
            raise ConfigurationError(
                f"hyperparameter {PATIENCE!r} is for backend 'native'; leave it out, or give backend='native'"
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
        self._check_device(hyperparameters)
        if self.external_memory:
            check_on_disk(hyperparameters)
        if self.backend == "xgboost_ray" and hyperparameters.get("tree_method") == "exact":
            raise ConfigurationError(
                "tree_method 'exact' is nothing that backend 'xgboost_ray' trains, on one worker either; "
                "use 'hist', or backend='native' with num_workers=1"
            )
        workers = self.workers_for(hyperparameters)
        check_gpu_parts(self.scaling, workers)
        if workers > 1 and hyperparameters.get("tree_method") == "exact":
            raise ConfigurationError(
                f"tree_method 'exact' does not distribute over {workers} workers; use 'hist', or num_workers=1"
            )
        if workers > 1 and hyperparameters.get("booster") == "gblinear":
            raise ConfigurationError(
                f"booster 'gblinear' does not distribute over {workers} workers: XGBoost trains each worker's model on "
                "that worker's rows alone; use 'gbtree', or num_workers=1"
            )
        check_several(str(hyperparameters.get("objective")), workers)

    def _check_threads(self, hyperparameters: Mapping[str, Any]) -> None:
        """Refuses more threads than a worker holds cores; in hand, and beside GPUs, these are what the machine has."""
        resources: Any = self.scaling.resources_per_worker
        said = (resources or {}).get("CPU")
        shared = self.in_hand or self.scaling.use_gpu  # As `trainers.gangs.worker.holdings` counts a worker's cores.
        held = None if shared and not said else max(1, int(said or 1))
        threads = threads_of(hyperparameters)
        if held is not None and threads > held:
            name = "nthread" if hyperparameters.get("nthread") is not None else "n_jobs"
            raise ConfigurationError(
                f"hyperparameter {name!r} is {threads}, and a worker holds {held} CPU{'s' if held > 1 else ''}; give "
                f"ScalingConfig(resources_per_worker={{'CPU': {threads}}}), or leave {name} out: all that a worker "
                "holds are used"
            )

    def _check_device(self, hyperparameters: Mapping[str, Any]) -> None:
        """Refuses a device that is none, is not what the workers hold, or does not train the method."""
        given, use_gpu = hyperparameters.get("device"), bool(self.scaling.use_gpu)
        if given is not None and not re.fullmatch(r"cpu|(cuda|gpu)(:\d+)?", str(given)):
            raise ConfigurationError(f"hyperparameter 'device' is {given!r}; give 'cpu' or 'cuda'")
        device = device_of(hyperparameters, use_gpu=use_gpu)
        if use_gpu and device == CPU:
            raise ConfigurationError(
                "hyperparameter 'device' is 'cpu', and ScalingConfig(use_gpu=True) holds a GPU for each worker; leave "
                "out one of the two"
            )
        if device != CPU and not use_gpu and not self.in_hand:
            raise ConfigurationError(
                f"hyperparameter 'device' is {given!r}, and its workers hold no GPU; give ScalingConfig(use_gpu=True)"
            )
        if device != CPU and hyperparameters.get("tree_method") == "exact":
            raise ConfigurationError("tree_method 'exact' trains on CPUs alone; use 'hist', or leave out use_gpu")

    def smaller_is_better(self, metric: str) -> bool | None:
        """See `Trainer.smaller_is_better`: of XGBoost's own metrics."""
        name = metric.rpartition(":")[2]
        return not maximized(name) if well_known(name) else None

    def metrics(self, channels: Iterable[str]) -> list[str] | None:
        """See `Trainer.metrics`; functions of the user's own say what they are called when they are called."""
        if self._own.metrics:
            return None
        given = self.hyperparameters.get("eval_metric")
        if given is None:
            raise ConfigurationError(
                "hyperparameters have no 'eval_metric', so nothing would be reported; give one, such as 'auc'"
            )
        names = metric_names(given)
        # Those of "train" are computed where they are the objective.
        ordered = sorted(channels, key=lambda channel: channel == "train")
        return [f"{channel}:{name}" for channel in ordered for name in names]

    @property
    def usual_units(self) -> int:
        """See `Tunes.usual_units`."""
        return USUAL_ROUNDS

    def tunable(self, ranged: Collection[str]) -> dict[str, Tunable]:
        """See `Tunes.tunable`."""
        return tunable(self.hyperparameters, ranged, self.units)

    def late_obstacle(self, name: str) -> str:
        """See `TakesEffect.late_obstacle`: every round is boosted with all that a trial has."""
        return "XGBoost trains with all its hyperparameters from the first round on"

    def label_rules(self, channel: str, metric: str | None) -> tuple[LabelRule, ...]:
        """See `Trainer.label_rules`."""
        return label_rules(self.hyperparameters, metric, train=channel == "train")

    def checked(
        self, channels: Mapping[str, Channel], metric: str | None = None, *, workers: int | None = None
    ) -> dict[str, Channel]:
        """See `Trainer.checked`; names of columns too."""
        if self.hyperparameters.get(PATIENCE) is not None and not set(channels) - {"train"}:
            raise ConfigurationError(
                f"hyperparameter {PATIENCE!r} waits for a metric to improve, and there is no channel beside 'train'; "
                "give one, to be evaluated"
            )
        if metric is not None and metric.startswith("train:") and self.backend == "xgboost_ray":
            raise ConfigurationError(
                f"objective_metric_name {metric!r} is not measured by backend 'xgboost_ray', which evaluates other "
                "channels alone; use backend='native'"
            )
        for name, channel in channels.items():
            heading = channel.source.heading
            check_names(name, heading.names if heading else None)
            if name == "train" and heading is not None:
                check_constraints(self.hyperparameters, heading.names, heading.count)
            check_said(name, channel.said, self.hyperparameters, workers or self.workers)
            if self.external_memory:
                check_channel(name, channel)
            check_categories(name, channel.coding, self.hyperparameters, heading.names if heading else None)
            if channel.coding and self.backend == "xgboost_ray":
                raise ConfigurationError(
                    f"channel {name!r} has categories, and backend 'xgboost_ray' reads none; use backend='native', or "
                    "encode them as numbers (pandas.get_dummies, say)"
                )
            if channel.said and self.backend == "xgboost_ray":
                raise ConfigurationError(
                    f"channel {name!r} says of its rows {', '.join(channel.said)}, and backend 'xgboost_ray' reads no "
                    "such; use backend='native'"
                )
            if channel.preparation and self.backend == "xgboost_ray":
                raise ConfigurationError(
                    f"channel {name!r} has dates, text labels or a number for missing values, and models of backend "
                    "'xgboost_ray' do not say so to whoever predicts with them; use backend='native', or write numbers"
                )
            if channel.classes and not self._own.objective:
                check_text_labels(name, channel.classes, self.hyperparameters)
            if channel.distribution == WHOLE and (workers or self.workers) > 1:
                raise ConfigurationError(
                    f"channel {name!r} has distribution={WHOLE!r}, and XGBoost adds up what each of "
                    f"{workers or self.workers} workers finds in its rows, so every row would count once a worker; "
                    f"leave it out, or give {SHARDED!r}"
                )
            if channel.sparse and self.backend == "xgboost_ray":
                raise ConfigurationError(
                    f"channel {name!r} has sparse rows, and backend 'xgboost_ray' reads dense ones alone; use "
                    "backend='native', or give X.toarray(), in which what is absent is 0"
                )
        check_margins({name: channel.margins for name, channel in channels.items()}, self.hyperparameters)
        return super().checked(channels, metric, workers=workers)

    def program(self, channels: dict[str, PlacedChannel]) -> XGBoostProgram:
        """See `Trainer.program`."""
        return XGBoostProgram(
            channels,
            self.hyperparameters,
            use_gpu=bool(self.scaling.use_gpu),
            external_memory=self.external_memory,
            own=self._own,
        )

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
        from trainers.cluster import Notices
        from trainers.xgboost.ray_backend import XGBoostRayGangs

        placed = {channel: source.place(self.workers) for channel, source in channels.items()}
        notices = None if on.private else Notices()
        return XGBoostRayGangs(
            name, placed, self.scaling, self.ray_params, notify=notify, notices=notices, patient=patient
        )

    def load_model(self, checkpoint: str) -> Any:
        """The checkpoint as an `xgboost.Booster`: the best round's where the trial is compared by that."""
        return handed_out(load_booster(checkpoint, {}, read=self._read))

    @staticmethod
    def matrix(model: Any, frame: Any) -> Any:
        """A DataFrame's rows as an `xgboost.DMatrix`, to predict with a model.

        Categories that the model does not know are missing; XGBoost 3.2 itself takes some of them for others. Dates
        become days, and the sentinel of missing values is missing, as in training.

        Args:
            model: an `xgboost.Booster`, of `load_model` say.
            frame: has the model's features among its columns, in any order, and categories as they are or as such.
        """
        import xgboost

        preparation = preparation_of(model)
        frame = with_days(frame, preparation.get("dates", ()))
        if (missing := preparation.get("missing")) is not None:
            numbers = frame.select_dtypes("number")
            frame = frame.assign(**{str(name): numbers[name].mask(numbers[name] == missing) for name in numbers})
        return xgboost.DMatrix(as_model_knows(model, frame), enable_categorical=True)

    def probe_obstacle(self) -> str:
        """See `Trainer.probe_obstacle`: a user's function may do anything, so that only those asked to run it do."""
        if self._own:
            return "it runs functions of yours"
        on_cpu = device_of(self.hyperparameters, use_gpu=bool(self.scaling.use_gpu)) == CPU
        return "" if on_cpu else "it trains on a GPU"

    def exact_from(self, hyperparameters: Mapping[str, Any]) -> bool:
        """See `Trainer.exact_from`: a booster does not hold the random state of XGBoost's sampling."""
        device = device_of(hyperparameters, use_gpu=bool(self.scaling.use_gpu))
        return goes_on_exactly({**hyperparameters, "device": device})

    def load_code(self, checkpoint: str) -> str:
        """See `Trainer.load_code`."""
        if "://" in checkpoint:
            return ""
        try:
            return loading(checkpoint, load_booster(checkpoint, {}))
        except WarmbandError:  # It is gone, and what makes its model can be said all the same.
            return loading(checkpoint, None)
