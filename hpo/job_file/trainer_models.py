"""The trainer of a job file: a model for each kind of trainer, turned into a trainer of the Python API."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from hpo.job_file.known_keys import PLACE, Give, Strict, own_fields
from hpo.jobs import NamedCode, look_here_too
from trainers.errors import ConfigurationError
from trainers.script import LISTS, STYLES, Arguments

if TYPE_CHECKING:
    from trainers import Trainer


_WORKERS = ("num_workers", "use_gpu", "resources_per_worker", "placement", "accelerator_type", "label_selector")
"""Keys of a trainer that are about its workers."""


class _TrainerSpec(Strict):
    """A trainer and its workers. What is not about workers goes to the trainer under its own name."""

    python: ClassVar[str]
    """The trainer's name in `trainers`."""

    type: str
    num_workers: Annotated[
        Annotated[int, Field(ge=0)] | Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=2)],
        Give("a whole number, 0 or more, or the least and the most, such as [2, 4]"),
    ] = Field(
        1,
        description="processes that train one trial together; [2, 4]: as many as there is room for, 2 at least; 0: in "
        "the command's own process, without Ray",
    )
    use_gpu: bool = Field(False, description="whether each worker holds a GPU")
    resources_per_worker: dict[str, Annotated[float, Field(ge=0)]] | None = Field(
        None, description="what each worker holds, in Ray's units, such as {CPU: 2}; null is one CPU, or one GPU"
    )
    placement: Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"] = Field(
        "PACK",
        description="how a gang's workers are laid over nodes: PACK puts them on one where they fit, SPREAD on as many "
        "as there are; STRICT_PACK and STRICT_SPREAD insist on it",
    )
    accelerator_type: str | None = Field(
        None, description="nodes with this accelerator alone, in Ray's word for it, such as A100; null: any"
    )
    label_selector: dict[str, str] | None = Field(
        None, description="nodes with these labels alone, such as {zone: in(a, b)} or {market-type: '!spot'}; null: any"
    )
    hyperparameters: dict[str, Any] = Field(
        default_factory=dict, description="the trainer's own, the same in every trial; tuned ones override them"
    )

    def trainer(self) -> Trainer:
        """In the Python API's form."""
        import trainers

        made: Trainer = getattr(trainers, self.python)(**self.keywords())
        return made

    def code(self) -> list[NamedCode]:
        """The Python code that it names, which would be imported and called."""
        return []

    def keywords(self) -> dict[str, Any]:
        """The arguments of every trainer, and this one's own."""
        from trainers import ScalingConfig

        workers: Any = tuple(self.num_workers) if isinstance(self.num_workers, list) else self.num_workers
        nodes: dict[str, Any] = {"accelerator_type": self.accelerator_type, "label_selector": self.label_selector}
        try:
            scaling = ScalingConfig(
                num_workers=workers,
                use_gpu=self.use_gpu,
                resources_per_worker=self.resources_per_worker,
                placement_strategy=self.placement,
                **nodes,
            )
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        own = own_fields(self, "type", *_WORKERS, "train_loop", "trainer_class", "options")
        return {"scaling": scaling, **own}


class XGBoostSpec(_TrainerSpec):
    """XGBoost."""

    python: ClassVar[str] = "XGBoostTrainer"

    type: Literal["xgboost"] = Field(description="XGBoost, its rows sharded over the workers")
    backend: Literal["native", "xgboost_ray"] = Field(
        "native", description="native: XGBoost's own collective, on workers that stay warm; or the package xgboost_ray"
    )
    ray_params: dict[str, Any] = Field(
        default_factory=dict, description="for xgboost_ray: fields of its RayParams, such as elastic_training"
    )
    external_memory: bool = Field(
        False, description="true: workers hold features on disk, for rows that are larger than their memory"
    )
    objective_function: Annotated[str | None, Give("a module and a function, such as shop.losses:focal")] = Field(
        None,
        pattern=PLACE,
        description="an objective of yours as module:name, obj(predt, dtrain) as for xgboost.train, which runs with "
        "--allow-code alone; null: the hyperparameter objective",
    )
    metric_functions: Annotated[
        list[Annotated[str, Field(pattern=PLACE)]], Give("a list of modules and functions, such as [shop.losses:cost]")
    ] = Field(
        default_factory=list,
        description="metrics of yours as module:name, custom_metric(predt, dtrain) as for xgboost.train, which run "
        "with --allow-code alone",
    )

    def code(self) -> list[NamedCode]:
        """See `_TrainerSpec.code`."""
        from trainers.process import code_named

        named = {"objective_function": self.objective_function, "metric_functions": self.metric_functions}
        places = code_named({name: value for name, value in named.items() if value}, tuple(named))
        return [NamedCode(key=f"trainer.{key}", name=name) for key, name in places.items()]

    def keywords(self) -> dict[str, Any]:
        """See `_TrainerSpec.keywords`."""
        if self.code():
            look_here_too()
        return super().keywords()


class _FunctionSpec(_TrainerSpec):
    """A trainer of a PyTorch training function."""

    train_loop: Annotated[str, Give("a module and a function, such as mnist:train")] = Field(
        pattern=PLACE,
        description="the training function as module:name, which runs with --allow-code alone; the module is looked "
        "for in the working directory too",
    )
    metrics: Annotated[list[str], Give("a list of names, such as [validation:accuracy]")] | None = Field(
        None, description="what the function reports, so that the objective is checked before the job starts; null: not"
    )
    precision: Literal["fp32", "bf16", "fp16", "bf16-master", "fp16-master"] = Field(
        "fp32", description="mixed precision; with -master, gradients in it as well"
    )
    report_timeout_s: float = Field(
        1800.0, gt=0, description="seconds that the function may take to a report, and workers wait for each other"
    )
    profile: bool | int | str | list[int | str] = Field(
        False, description="true: profile every trial; or trials by number or name"
    )
    profile_steps: Annotated[list[int], Give("two numbers, such as [10, 20]")] = Field(
        [10, 20], description="the steps of a trial between which it is profiled"
    )
    steps_per_report: Annotated[int, Field(ge=1)] | None = Field(
        None, description="updates in a unit of resource, for functions that report so often; null: a unit is an epoch"
    )

    def code(self) -> list[NamedCode]:
        """See `_TrainerSpec.code`."""
        return [NamedCode(key="trainer.train_loop", name=self.train_loop)]

    def keywords(self) -> dict[str, Any]:
        """The arguments of every trainer, and this one's own."""
        look_here_too()
        return {"train_loop_per_worker": self.train_loop, **super().keywords()}


class TorchSpec(_FunctionSpec):
    """PyTorch over AllReduce."""

    python: ClassVar[str] = "TorchTrainer"

    type: Literal["torch"] = Field(description="PyTorch, a training function on every worker, gradients by AllReduce")
    compile: bool = Field(False, description="compile models with torch.compile")
    layout: Annotated[str, Give("words, such as shard=2 tensor=2")] | None = Field(
        None,
        description="how workers share a model: shard=2 tensor=2, say; null: each has the whole one, and gradients are "
        "added up",
    )


class ParameterServerSpec(_FunctionSpec):
    """PyTorch over parameter servers."""

    python: ClassVar[str] = "ParameterServerTrainer"

    type: Literal["parameter_server"] = Field(
        description="PyTorch, a training function on every worker, gradients pushed to parameter servers"
    )
    server_resources: dict[str, Annotated[float, Field(ge=0)]] | None = Field(
        None, description="what each server asks Ray for, such as {CPU: 1}; null: nothing"
    )


class MetricDefinitionSpec(Strict):
    """A metric that is found in a program's output."""

    Name: str = Field(min_length=1, description="the metric's name, such as validation:accuracy")
    Regex: str = Field(
        min_length=1, description="a regular expression with one group, the number; a group named step says which unit"
    )


class StepSpec(Strict):
    """A program's step counter."""

    first: float | None = Field(None, description="the step of the first unit; null: 0 or every, as the first step is")
    every: float | None = Field(None, gt=0, description="steps of a unit, whole or not; null: 1, and whole steps alone")
    key: str = Field(
        "step", min_length=1, description="the key of JSON lines and column of CSV files that has the step"
    )


class ArgumentsFileSpec(Strict):
    """The file of a program whose hyperparameters are in a file."""

    name: Annotated[str, Give("a name that ends in .yaml or .json, without folders")] = Field(
        pattern=r"^[^/]+\.(yaml|yml|json)$", description="the file's name, which says whether it is YAML or JSON"
    )
    option: str = Field("", description="the word before its path, such as --config; empty: its path alone")


class ArgumentsSpec(Strict):
    """How hyperparameters reach a program."""

    style: Annotated[Literal[STYLES], Give(f"one of {', '.join(STYLES)}")] | None = Field(  # type: ignore[valid-type]
        None, description="the form of a value; null: as the program's source says, else --name value"
    )
    booleans: Annotated[str | dict[str, str], Give("a form such as --flag, or names and forms")] = Field(
        "",
        description="how true and false are given, for all or by name: --flag (the option or nothing), "
        "--flag/--no-flag, --flag true, --flag=true, --flag yes/no; empty: as the program's source declares them",
    )
    lists: Annotated[str | dict[str, str], Give(f"one of {', '.join(LISTS)}, or names and these")] = Field(
        "",
        description="how lists are given, for all or by name: words (--sizes 64 32), repeated (--sizes 64 --sizes 32), "
        "comma, spaces or json; empty: as the program's source declares them, else json",
    )
    positional: list[str] = Field(
        default_factory=list, description="hyperparameters that are given as values alone, in this order"
    )
    file: ArgumentsFileSpec | None = Field(None, description="for style file: the file, and the word before its path")

    @field_validator("booleans", "lists")
    @classmethod
    def _forms(cls, forms: Any, about: ValidationInfo) -> Any:
        if forms:
            Arguments.of({str(about.field_name): forms})
        return forms

    @model_validator(mode="after")
    def _together(self) -> Self:
        Arguments.of(self.given())
        return self

    def given(self) -> dict[str, Any]:
        """In the Python API's form."""
        return {name: value for name, value in self.model_dump(exclude_none=True).items() if value}


def _of_style(given: Any) -> Any:
    return {"style": given} if isinstance(given, str) else given


class ScriptSpec(_TrainerSpec):
    """A program of the user's."""

    python: ClassVar[str] = "ScriptTrainer"

    type: Literal["script"] = Field(description="a program of yours, started by a launcher on every worker")
    entry_point: str = Field(
        min_length=1, description="the program, a file below source_dir, which runs with --allow-code alone"
    )
    source_dir: str = Field(".", description="the folder that it runs in a copy of, from the working directory on")
    launcher: str = Field(
        "python",
        description="python, torchrun, accelerate, mpirun, tensorflow, perhaps with options behind it, or a command "
        "line with {program} in it",
    )
    arguments: Annotated[
        ArgumentsSpec | None,
        BeforeValidator(_of_style, json_schema_input_type=Literal[STYLES] | ArgumentsSpec | None),
        Give(f"one of {', '.join(STYLES)}, or a group of keys"),
    ] = Field(
        None, description="how hyperparameters reach the program; a text is its style; null: as its source declares"
    )
    working_dir: str | None = Field(
        None, min_length=1, description="where it runs, from the copy of source_dir on, or absolute; null is the copy"
    )
    metric_definitions: Annotated[
        list[MetricDefinitionSpec], Give("a list, such as [{Name: validation:accuracy, Regex: 'acc=(\\S+)'}]")
    ] = Field(default_factory=list, description="the metrics in what it prints; empty where it reports otherwise")
    metric_files: Annotated[list[str], Give("a list of globs, such as ['logs/**/metrics.csv']")] = Field(
        default_factory=list,
        description="globs of files that it writes metrics to: TensorBoard's event files, CSV, JSON lines or documents",
    )
    step: Annotated[StepSpec, Give("keys, such as {first: 0, every: 10}")] | None = Field(
        None, description="the program's step counter; null: whole steps that rise by one, from 0 or from 1 on"
    )
    processes_per_worker: int = Field(1, ge=1, description="processes of the program on each worker")
    parameter_servers: int = Field(0, ge=0, description="for tensorflow, how many of the workers are parameter servers")
    environment: dict[str, str] = Field(default_factory=dict, description="variables of its environment")
    length: Annotated[
        Annotated[int, Field(ge=1, strict=True)] | Annotated[str, Field(min_length=1, strict=True)] | None,
        Give("the name of the hyperparameter that sets it, such as max_iters, or a whole number of reports, 1 or more"),
    ] = Field(
        None,
        description="the hyperparameter that sets the program's length, by name, or the number of reports of a trial; "
        "null: the first of epochs, num_epochs, num_train_epochs and num_boost_round that there is",
    )
    keep_loaded: bool = Field(False, description="whether it stays loaded, and runs one trial after the other")
    runtime_env: dict[str, Any] = Field(
        default_factory=dict, description="Ray's environment for the workers: env_vars, image_uri, pip, working_dir"
    )
    report_timeout_s: float = Field(1800.0, gt=0, description="seconds that it may take to a report")
    grace_period_s: float = Field(30.0, gt=0, description="seconds from SIGTERM to SIGKILL")

    def code(self) -> list[NamedCode]:
        """See `_TrainerSpec.code`."""
        return [NamedCode(key="trainer.entry_point", name=self.entry_point)]

    def trainer(self) -> Trainer:
        """See `_TrainerSpec.trainer`; its files have to be there, since a job would find that after its start."""
        from trainers import ScriptTrainer

        made = ScriptTrainer(**self.keywords())
        made.check_files()
        return made

    def keywords(self) -> dict[str, Any]:
        """See `_TrainerSpec.keywords`."""
        definitions = [each.model_dump() for each in self.metric_definitions]
        step = None if self.step is None else self.step.model_dump(exclude_unset=True)
        arguments = self.arguments and self.arguments.given()
        return {**super().keywords(), "metric_definitions": definitions, "step": step, "arguments": arguments}


class RayTrainSpec(_TrainerSpec):
    """A trainer of Ray Train's."""

    python: ClassVar[str] = "RayTrainTrainer"

    type: Literal["ray_train"] = Field(
        description="a ray.train.torch.TorchTrainer of yours, its function on warm gangs"
    )
    ray_trainer: Annotated[str, Give("a module and a trainer, such as mnist:trainer")] = Field(
        pattern=PLACE,
        description="the trainer as module:name, which runs with --allow-code alone; the module is looked for in the "
        "working directory too; without keys of workers, they are those of its scaling_config, and without "
        "hyperparameters, these are its train_loop_config",
    )
    report_timeout_s: float | None = Field(
        None, gt=0, description="seconds that the function may take to a report; null: the timeout_s of its TorchConfig"
    )

    def code(self) -> list[NamedCode]:
        """See `_TrainerSpec.code`."""
        return [NamedCode(key="trainer.ray_trainer", name=self.ray_trainer)]

    def keywords(self) -> dict[str, Any]:
        """The arguments of every trainer, as far as the file has them, and this one's own."""
        look_here_too()
        given = self.model_fields_set
        left_out = {"scaling"} if not given & set(_WORKERS) else set()
        left_out |= {"hyperparameters"} - given
        return {name: value for name, value in super().keywords().items() if name not in left_out}


class CustomSpec(_TrainerSpec):
    """A trainer of the user's own."""

    type: Literal["custom"] = Field(description="a trainer of your own: a subclass of trainers.Trainer")
    trainer_class: Annotated[str, Give("a module and a class, such as shop.trainers:Churn")] = Field(
        pattern=PLACE,
        description="the class as module:name, which runs with --allow-code alone; the module is looked for in the "
        "working directory too",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="what the class takes beside scaling and hyperparameters"
    )

    def code(self) -> list[NamedCode]:
        """See `_TrainerSpec.code`."""
        return [NamedCode(key="trainer.trainer_class", name=self.trainer_class)]

    def trainer(self) -> Trainer:
        """In the Python API's form."""
        from trainers.registry import trainer_class

        look_here_too()
        kind = trainer_class(self.trainer_class)
        try:
            return kind(**self.keywords(), **self.options)
        except TypeError as error:
            raise ConfigurationError(f"options are {self.options}: {error}") from error


OneTrainerSpec = Annotated[
    XGBoostSpec | TorchSpec | ParameterServerSpec | ScriptSpec | RayTrainSpec | CustomSpec,
    Field(discriminator="type"),
    Give("a group of keys, type among them"),
]


class SeveralSpec(Strict):
    """Several trainers, one of them for each configuration."""

    type: Literal["several"] = Field(
        description="one of several trainers for each configuration, which the hyperparameter estimator says; those of "
        "a trainer, and their ranges, have its name in front, such as boosted.eta"
    )
    trainers: Annotated[dict[str, OneTrainerSpec], Give("names and trainers")] = Field(
        min_length=2, description="the trainers by name; all read the same channels, on workers of the same kind"
    )
    metrics: dict[str, str] = Field(
        default_factory=dict,
        description="what a trainer calls the objective, by its name, where that is not objective_metric_name",
    )

    def trainer(self) -> Trainer:
        """In the Python API's form."""
        from trainers import SeveralTrainers

        return SeveralTrainers({name: each.trainer() for name, each in self.trainers.items()}, metrics=self.metrics)

    def code(self) -> list[NamedCode]:
        """See `_TrainerSpec.code`."""
        return [
            replace(code, key=code.key.replace("trainer.", f"trainer.trainers.{name}.", 1))
            for name, each in self.trainers.items()
            for code in each.code()
        ]


TrainerSpec = Annotated[
    XGBoostSpec | TorchSpec | ParameterServerSpec | ScriptSpec | RayTrainSpec | CustomSpec | SeveralSpec,
    Field(discriminator="type"),
    Give("a group of keys, type among them"),
]
