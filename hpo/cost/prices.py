"""Prices of workers by the hour: of a worker, of its resources, or of an instance type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from hpo.text import money
from hpo.yaml_core import load
from trainers.checking import did_you_mean, is_number, nearest
from trainers.errors import ConfigurationError
from trainers.home import home
from trainers.plain import plain_scalar

GB = 1e9
"""Bytes; Ray counts a worker's memory in bytes."""

HOUR = 3600.0

EXAMPLES = Path(__file__).with_name("prices.yaml")
"""The table that is read where the user has none: examples that say how to write one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A machine type of a table.

    Args:
        name: what the table calls it.
        per_hour: its price.
        cpus: that it has.
        gpus: that it has.
        memory_gb: that it has, in 10^9 bytes; 0 where the table does not say.

    Raises:
        ConfigurationError: a value is wrong.
    """

    name: str
    per_hour: float
    cpus: float
    gpus: float = 0.0
    memory_gb: float = 0.0

    def __post_init__(self) -> None:
        for each in ("per_hour", "cpus", "gpus", "memory_gb"):
            _check_amount(f"{each} of instance {self.name!r}", getattr(self, each))
        if not self.cpus:
            raise ConfigurationError(f"cpus of instance {self.name!r} is {self.cpus!r}; give a number above 0")

    def share(self, resources: Mapping[str, float]) -> float:
        """A worker's share of the machine: the largest of its parts of CPUs, GPUs and memory.

        Raises:
            ConfigurationError: a worker does not fit on it.
        """
        asked = {
            "cpus": resources.get("CPU", 0.0),
            "gpus": resources.get("GPU", 0.0),
            "memory_gb": resources.get("memory", 0.0) / GB if self.memory_gb else 0.0,
        }
        for name, amount in asked.items():
            if amount > getattr(self, name):
                raise ConfigurationError(
                    f"a worker asks for {amount:g} {name}, and instance {self.name!r} has {getattr(self, name):g}; "
                    "give a larger instance, or other resources_per_worker"
                )
        return max((amount / getattr(self, name) for name, amount in asked.items() if amount), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """Tariff of one job's workers.

    Args:
        per_worker_hour: the price of a worker-hour, discount included.
        currency: a label.
    """

    per_worker_hour: float
    currency: str

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any]) -> Tariff | None:
        """The tariff of a job of the record; None without prices."""
        return cls(**state) if (state := spec.get("tariff")) else None

    def of(self, worker_seconds: float) -> float:
        """The cost of a number of worker-seconds."""
        return self.per_worker_hour * worker_seconds / HOUR

    def text(self, worker_seconds: float) -> str:
        """The same, for people."""
        return money(self.of(worker_seconds), self.currency)

    def shares(self, worker_seconds: Mapping[str, float]) -> dict[str, Any]:
        """The cost of a job's worker-seconds, given by kind, in all and by kind, for its summary."""
        by_kind = {kind: self.of(seconds) for kind, seconds in worker_seconds.items()}
        return {**self.to_json(), "total": sum(by_kind.values()), "by_kind": by_kind}

    def worker_seconds(self, cost: float) -> float:
        """How many worker-seconds an amount pays for."""
        return cost * HOUR / self.per_worker_hour if self.per_worker_hour else math.inf

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices by the hour; a worker costs the sum of what is given. Nothing is rounded up to minutes or hours.

    Args:
        per_worker_hour: of a worker, whatever it holds.
        per_cpu_hour: of each CPU that a worker holds.
        per_gpu_hour: of each GPU that a worker holds.
        per_memory_gb_hour: of each 10^9 bytes of memory that a worker asks Ray for.
        instance: a machine type; a worker pays for its share of it.
        currency: a label, which is printed behind amounts; nothing is converted.
        spot_discount: what is taken off all of it, from 0 (nothing) to less than 1; 0.6 where spot machines cost 40%.

    Raises:
        ConfigurationError: a value is wrong, or none is given.
    """

    per_worker_hour: float = 0.0
    per_cpu_hour: float = 0.0
    per_gpu_hour: float = 0.0
    per_memory_gb_hour: float = 0.0
    instance: Instance | None = None
    currency: str = ""
    spot_discount: float = 0.0

    def __post_init__(self) -> None:
        for each in (*_RATES, "currency", "spot_discount"):
            object.__setattr__(self, each, plain_scalar(getattr(self, each)))
        for each in _RATES:
            _check_amount(each, getattr(self, each))
        if not isinstance(self.instance, Instance | None):
            raise ConfigurationError(f"instance is {self.instance!r}; give what Prices.of_instance('name') makes")
        if not isinstance(self.currency, str) or len(self.currency) > 8 or not self.currency.isprintable():
            raise ConfigurationError(f"currency is {self.currency!r}; give a label of at most 8 letters, such as 'EUR'")
        _check_amount("spot_discount", self.spot_discount, below=1.0)
        if self.instance is None and not any(getattr(self, each) for each in _RATES):
            raise ConfigurationError(f"prices are all 0; give one of {', '.join(_RATES)}, or an instance")

    @classmethod
    def of_resources(
        cls,
        *,
        cpu: float = 0.0,
        gpu: float = 0.0,
        memory_gb: float = 0.0,
        currency: str = "",
        spot_discount: float = 0.0,
    ) -> Self:
        """Prices by the hour of each CPU, GPU and 10^9 bytes of memory that `ScalingConfig` gives a worker."""
        return cls(
            per_cpu_hour=cpu,
            per_gpu_hour=gpu,
            per_memory_gb_hour=memory_gb,
            currency=currency,
            spot_discount=spot_discount,
        )

    @classmethod
    def of_instance(
        cls, name: str, *, table: str | Path | None = None, currency: str | None = None, spot_discount: float = 0.0
    ) -> Self:
        """The price of a machine type.

        Args:
            name: what the table calls it.
            table: a YAML file in the form of `EXAMPLES`; None is `WARMBAND_HOME/prices.yaml`, else the examples.
            currency: a label over the table's.
            spot_discount: as in `Prices`.

        Raises:
            ConfigurationError: the table has no such instance, or is wrong.
        """
        path = Path(table) if table is not None else _own_table() or EXAMPLES
        content = _read(path)
        instances = content["instances"]
        if name not in instances:
            near = nearest(name, instances, cutoff=0.3)
            hint = f"did you mean {near!r}? Or " if near else ""
            own = path if path != EXAMPLES else home() / "prices.yaml"
            raise ConfigurationError(
                f"instance is {name!r}, and the table {path} has {', '.join(instances) or 'none'}; {hint}add it to "
                f"{own}, in the form of {EXAMPLES}"
            )
        return cls(
            instance=Instance(name=name, **instances[name]),
            currency=content.get("currency", "") if currency is None else currency,
            spot_discount=spot_discount,
        )

    def tariff(self, resources: Mapping[str, float]) -> Tariff:
        """The tariff of a worker with these resources.

        Args:
            resources: in Ray's units: "CPU", "GPU", and "memory" in bytes; others cost nothing.

        Raises:
            ConfigurationError: a worker does not fit on the instance, or costs nothing.
        """
        hour = (
            self.per_worker_hour
            + self.per_cpu_hour * resources.get("CPU", 0.0)
            + self.per_gpu_hour * resources.get("GPU", 0.0)
            + self.per_memory_gb_hour * resources.get("memory", 0.0) / GB
        )
        if self.instance is not None:
            hour += self.instance.per_hour * self.instance.share(resources)
        if not hour:
            amounts = ", ".join(f"{name} {amount:g}" for name, amount in resources.items()) or "nothing"
            raise ConfigurationError(
                f"a worker holds {amounts}, and costs nothing at these prices; give the price of one of these, or "
                "per_worker_hour"
            )
        return Tariff(per_worker_hour=hour * (1.0 - self.spot_discount), currency=self.currency)

    def of(self, worker_seconds: float, resources: Mapping[str, float]) -> float:
        """The cost of so many seconds of workers with these resources; see `tariff`."""
        return self.tariff(resources).of(worker_seconds)

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, for the record."""
        return asdict(self)

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Self:
        """As `to_json` recorded it."""
        instance = state.get("instance")
        return cls(**{**state, "instance": Instance(**instance) if instance else None})


_RATES = ("per_worker_hour", "per_cpu_hour", "per_gpu_hour", "per_memory_gb_hour")
_TABLE_KEYS = ("currency", "instances")
_INSTANCE_KEYS = tuple(each.name for each in fields(Instance) if each.name != "name")


def _own_table() -> Path | None:
    path = home() / "prices.yaml"
    return path if path.exists() else None


def _read(path: Path) -> dict[str, Any]:
    try:
        content = load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the table of prices {path} cannot be read: {' '.join(str(error).split())}; correct it, or give another"
        ) from None
    table = _known(content, _TABLE_KEYS, f"the table of prices {path}")
    if not isinstance(table.get("currency", ""), str):
        raise ConfigurationError(f"currency in {path} is {table['currency']!r}; give text, in quotes")
    instances = table.get("instances")
    if not isinstance(instances, dict):
        raise ConfigurationError(f"instances in {path} is {instances!r}; give names and their prices, as {EXAMPLES}")
    for name, entry in instances.items():
        where = f"instance {name!r} in {path}"
        for needed in ("per_hour", "cpus"):
            if needed not in _known(entry, _INSTANCE_KEYS, where):
                raise ConfigurationError(f"{where} has no {needed}; give it, as {EXAMPLES} does")
    return {**table, "instances": {str(name): entry for name, entry in instances.items()}}


def _known(content: Any, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ConfigurationError(f"{where} is {content!r}; give {', '.join(keys)}, as {EXAMPLES} does")
    for key in content:
        if key not in keys:
            known = f"{', '.join(keys)}{did_you_mean(key, keys)}"
            raise ConfigurationError(f"{where} has the key {key!r}; known are {known}")
    return content


def _check_amount(field: str, value: object, below: float = math.inf) -> None:
    if not is_number(value) or not 0 <= value < below:
        raise ConfigurationError(
            f"{field} is {value!r}; give a number from 0 to less than {below:g}"
            if below < math.inf
            else f"{field} is {value!r}; give a number, 0 or more"
        )
