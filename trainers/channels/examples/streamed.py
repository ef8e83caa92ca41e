"""A Ray Dataset that is read while training runs: executed anew in each pass, and kept nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from trainers.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Streamed:
    """A Ray Dataset, and the rows of the buffer that it is shuffled in; see `Form`."""

    dataset: Any
    buffer: int

    located: None = None
    rows: None = None
    ragged: tuple[str, ...] = ()

    @property
    def described(self) -> dict[str, Any]:
        """See `Form`."""
        columns = self.dataset.columns(fetch_if_missing=False)
        return {"columns": columns, "files": self.dataset.input_files()}

    def opened(self) -> NoReturn:
        """See `Form`."""
        raise ConfigurationError("a ray.data.Dataset is no dataset of PyTorch; use prepare_data() with its channel")

    def split(self, workers: int) -> list[Any]:
        """An iterator for each worker, which give as many rows each, in the same order every time they are read.

        What is left over by the number of workers is left out. Reading begins when all have begun; it needs Ray.
        """
        options = self.dataset.context.execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            iterators: list[Any] = self.dataset.streaming_split(workers, equal=True)
        finally:
            options.preserve_order = before
        return iterators


def opened(arguments: Mapping[str, Any]) -> Streamed:
    """What `Examples.ray_data` stands for."""
    return Streamed(dataset=arguments["dataset"], buffer=arguments["buffer"])
