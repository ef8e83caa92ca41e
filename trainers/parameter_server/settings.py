"""Settings of a trial's parameter servers, read from its hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from trainers.checking import check_whole, did_you_mean, is_number
from trainers.errors import ConfigurationError

MODES = ("sync", "async", "bounded", "ring")
"""How workers make updates together: all pushes at once; each push as it comes; each as it comes, with a limit on the
lead; or without servers, each its own, averaged with neighbours on a ring."""

PLACEMENTS = ("one", "each")
"""Where servers are: one for all workers, on any node, or `num_servers` of them; or one beside each worker."""

NAMES = (
    "mode",
    "server_placement",
    "num_servers",
    "staleness_bound",
    "backup_workers",
    "delay_ms",
    "link_bytes_per_second",
)
"""The hyperparameters that are read here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the workers of one trial share their parameters.

    Args:
        workers: how many there are.
        mode: one of `MODES`.
        placement: one of `PLACEMENTS`; with "each" there are as many servers as workers.
        num_servers: the parameters are spread over so many.
        staleness_bound: "bounded": steps that a worker may be ahead of the slowest.
        backup_workers: "sync": a round ends without so many of the slowest, whose pushes are dropped.
        delay_ms: mean of the exponential delay before each push, by worker, in milliseconds.
        link_bytes_per_second: what each server's link carries each way, for all workers together; None: no limit.
    """

    workers: int
    mode: str = "sync"
    placement: str = "one"
    num_servers: int = 1
    staleness_bound: int = 3
    backup_workers: int = 0
    delay_ms: tuple[float, ...] = ()
    link_bytes_per_second: float | None = None

    @classmethod
    def of(cls, hyperparameters: Mapping[str, Any], workers: int) -> Self:
        """Reads them; what is missing or None has its default, other names are left alone.

        A value that the mode, or the servers' placement, does not use still has to be one, but need not suit the
        number of workers, since both may be tuned together.

        Raises:
            ConfigurationError: a value is wrong.
        """
        values = {name: hyperparameters[name] for name in NAMES if hyperparameters.get(name) is not None}
        mode = _word("mode", values.get("mode", "sync"), MODES)
        placement = _word("server_placement", values.get("server_placement", "one"), PLACEMENTS)
        servers = _whole("num_servers", values.get("num_servers", 1), least=1)
        backup = _whole("backup_workers", values.get("backup_workers", 0), least=0)
        if mode == "sync" and backup >= workers:
            raise ConfigurationError(
                f"hyperparameter 'backup_workers' is {backup} of {workers} workers, and leaves none to train; "
                f"give 0 to {workers - 1}"
            )
        return cls(
            workers=workers,
            mode=mode,
            placement=placement,
            num_servers=workers if placement == "each" else servers,
            staleness_bound=_whole("staleness_bound", values.get("staleness_bound", 3), least=0),
            backup_workers=backup,
            delay_ms=_delays(values.get("delay_ms", 0), workers),
            link_bytes_per_second=_rate(values.get("link_bytes_per_second")),
        )

    @property
    def workers_an_update(self) -> int:
        """How many workers' gradients one update averages; on a ring, one of the mean of all models."""
        if self.mode == "ring":
            return self.workers
        return self.workers - self.backup_workers if self.mode == "sync" else 1

    @property
    def delayed(self) -> bool:
        """Whether pushes are delayed, which results have to say."""
        return any(self.delay_ms)


def _word(name: str, value: Any, words: tuple[str, ...]) -> str:
    if isinstance(value, str) and value in words:
        return str(value)
    raise ConfigurationError(
        f"hyperparameter {name!r} is {value!r}; give one of {', '.join(words)}{did_you_mean(value, words)}"
    )


def server_resources(given: Any) -> dict[str, float]:
    """What a trainer says that each server asks Ray for, such as {"CPU": 1}; None asks for nothing.

    Raises:
        ConfigurationError: it says no such thing.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(
        isinstance(name, str) and name and is_number(amount) and amount >= 0 for name, amount in given.items()
    ):
        raise ConfigurationError(
            f"server_resources is {given!r}; give amounts, 0 or more, by Ray's names, such as {{'CPU': 1}}"
        )
    return {name: float(amount) for name, amount in given.items() if amount}


def _whole(name: str, value: Any, least: int) -> int:
    check_whole(f"hyperparameter {name!r}", value, least)
    return int(value)


def _delays(value: Any, workers: int) -> tuple[float, ...]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != workers:
            raise ConfigurationError(
                f"hyperparameter 'delay_ms' is {value!r}, a list of {len(value)}, for {workers} workers; "
                "give one number for all, or a list with one for each"
            )
        return tuple(_delay(value, one) for one in value)
    return (_delay(value, value),) * workers


def _delay(value: Any, one: Any) -> float:
    if not is_number(one) or one < 0:
        raise ConfigurationError(f"hyperparameter 'delay_ms' is {value!r}; give milliseconds, 0 or more")
    return float(one)


def _rate(value: Any) -> float | None:
    if value is None:
        return None
    if not is_number(value) or value <= 0:
        raise ConfigurationError(
            f"hyperparameter 'link_bytes_per_second' is {value!r}; give bytes a second, more than 0 (1 Gbit/s is "
            "125000000), or leave it out for a link without a limit"
        )
    return float(value)
