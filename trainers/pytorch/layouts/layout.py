"""`Layout`: sizes of the dimensions in which a gang's workers share one model; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from trainers.checking import check_whole, did_you_mean
from trainers.errors import ConfigurationError

AUTO = "auto"
"""In the place of a layout's words: a tuner's probe chooses one."""
LAYOUT, MICRO_BATCHES, SCHEDULE = "layout", "micro_batches", "schedule"
"""The hyperparameters that go before the trainer's layout, and before these fields of it."""

SCHEDULES = ("GPipe", "1F1B", "Interleaved1F1B")

_FIELD = re.compile(r"\s*([a-z_]+)\s*=\s*(\w+)\s*,?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Sizes of the dimensions in which workers share a model; they multiply to the number of workers.

    `replicate` and `shard` are data parallel: each of their parts trains on rows of its own. The workers of one part,
    `tensor * pipeline` of them, see the same rows.

    Args:
        replicate: copies of the model; None: as many as the workers make.
        shard: workers that hold a copy's parameters, gradients and optimizer state in shards, and gather the
            parameters of a block while they compute it (FSDP2; Rajbhandari et al., "ZeRO", SC 2020, stage 3). With
            `replicate` it is hybrid.
        tensor: workers that compute each layer together, as the model's plan deals its matrices out (Shoeybi et al.,
            "Megatron-LM", 2019).
        pipeline: workers that each hold a stage of the model, one behind the other.
        schedule: of a pipeline's micro-batches: "GPipe" (Huang et al., NeurIPS 2019), "1F1B" (Narayanan et al.,
            SOSP 2019) or "Interleaved1F1B" (Narayanan et al., SC 2021).
        micro_batches: that a pipeline cuts each worker's batch into; None: as many as it has stages.
        stages_per_worker: of a pipeline; more than 1 with "Interleaved1F1B" alone.

    Raises:
        ConfigurationError: a value is wrong.
    """

    replicate: int | None = None
    shard: int = 1
    tensor: int = 1
    pipeline: int = 1
    schedule: str = "1F1B"
    micro_batches: int | None = None
    stages_per_worker: int = 1

    def __post_init__(self) -> None:
        for name in ("replicate", "shard", "tensor", "pipeline", MICRO_BATCHES, "stages_per_worker"):
            required = name not in ("replicate", MICRO_BATCHES)
            check_whole(f"layout: {name}", getattr(self, name), 1, required=required)
        if self.schedule not in SCHEDULES:
            hint = did_you_mean(self.schedule, SCHEDULES)
            raise ConfigurationError(f"layout: schedule is {self.schedule!r}; give one of {', '.join(SCHEDULES)}{hint}")
        if self.stages_per_worker > 1 and (self.schedule != "Interleaved1F1B" or self.pipeline == 1):
            raise ConfigurationError(
                f"layout: stages_per_worker is {self.stages_per_worker}, with pipeline={self.pipeline} and "
                f"schedule={self.schedule}; only Interleaved1F1B of a pipeline gives a worker several stages"
            )
        if self.micro_batches is not None and self.pipeline == 1:
            raise ConfigurationError(
                f"layout: micro_batches is {self.micro_batches}, and there is no pipeline; leave it out, or give "
                "pipeline=2, say"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """A layout of words such as "shard=2 tensor=2", as hyperparameters and job files have it.

        Raises:
            ConfigurationError: a word is no field of a layout, or its value is wrong.
        """
        known = [field.name for field in fields(cls)]
        values: dict[str, Any] = {}
        at = 0
        while at < len(text.rstrip()):
            word = _FIELD.match(text, at)
            if word is None or word[1] not in known or word[1] in values:
                wrong = text[at:].split()[0]
                raise ConfigurationError(
                    f"layout {text!r}: {wrong!r} is not understood; give fields such as 'shard=2 tensor=2', once each, "
                    f"out of {', '.join(known)}{did_you_mean(wrong.partition('=')[0], known)}"
                )
            values[word[1]] = int(word[2]) if word[2].isdigit() else word[2]
            at = word.end()
        return cls(**values)

    @classmethod
    def given(cls, value: object) -> Self:
        """A layout, whether it was given as one, as words, or not at all.

        Raises:
            ConfigurationError: it is something else, or wrong.
        """
        if value is None:
            return cls()
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        raise ConfigurationError(f"layout is {value!r}; give a Layout, or words such as 'shard=2 tensor=2'")

    def under(self, hyperparameters: Mapping[str, Any]) -> Layout:
        """This layout with what hyperparameters say in its place: a whole one, or fields of a pipeline.

        Raises:
            ConfigurationError: a value is wrong.
        """
        layout = self
        if (value := hyperparameters.get(LAYOUT)) not in (None, AUTO):
            layout = type(self).given(value)
        changed = {
            name: hyperparameters[name] for name in (MICRO_BATCHES, SCHEDULE) if hyperparameters.get(name) is not None
        }
        # They may be tuned beside layouts some of which have no pipeline.
        return replace(layout, **changed) if changed and layout.pipeline > 1 else layout

    def on(self, workers: int) -> Layout:
        """The layout of so many workers, with its number of replicas.

        Raises:
            ConfigurationError: the sizes do not multiply to it.
        """
        inner = self.shard * self.tensor * self.pipeline
        if self.replicate is None and workers % inner == 0:
            return replace(self, replicate=workers // inner)
        if self.replicate is None:
            raise ConfigurationError(
                f"layout '{self}' takes a multiple of {inner} workers, and the gang has {workers}; give num_workers="
                f"{-(-workers // inner) * inner}, or sizes that divide {workers}"
            )
        if self.replicate * inner != workers:
            raise ConfigurationError(
                f"layout '{self}' takes {self.replicate * inner} workers, and the gang has {workers}; give num_workers="
                f"{self.replicate * inner}, or sizes that multiply to {workers}"
            )
        return self

    @property
    def together(self) -> int:
        """Workers that see the same rows."""
        return self.tensor * self.pipeline

    @property
    def is_replicas(self) -> bool:
        """Whether every worker holds the whole model."""
        return self.shard * self.tensor * self.pipeline == 1

    @property
    def stages(self) -> int:
        """Stages of the pipeline."""
        return self.pipeline * self.stages_per_worker

    def __str__(self) -> str:
        """In the words that `parse` reads; what is as usual is left out."""
        usual = {field.name: field.default for field in fields(self)}
        said = [f"{name}={value}" for name, value in asdict(self).items() if value != usual[name]]
        return " ".join(said) or "shard=1"
