"""Examples on their driver, and as workers see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

from trainers.channels import fingerprint
from trainers.channels.examples import columns, images, own, streamed, text
from trainers.channels.examples.given import KINDS, Examples
from trainers.channels.examples.located import Located
from trainers.channels.fingerprint import Parts
from trainers.channels.table import Table
from trainers.errors import ConfigurationError, DataError

SAMPLES = 64
"""Files that every node looks for."""
_SHOWN = 8


class Form(Protocol):
    """One kind of examples, found and counted; it goes to workers."""

    @property
    def located(self) -> Located | None:
        """Its files; None where it names none."""

    @property
    def rows(self) -> int | None:
        """How many examples there are, where that is known."""

    @property
    def ragged(self) -> tuple[str, ...]:
        """Columns whose values have various lengths."""

    @property
    def described(self) -> dict[str, Any]:
        """What `describe` says of it."""

    def opened(self) -> Any:
        """The dataset, as PyTorch's DataLoader takes it, on a worker."""


_FORMS: Mapping[str, Callable[[Mapping[str, Any]], Form]] = {
    "images": images.opened,
    "text": text.opened,
    "columns": columns.opened,
    "named": own.opened,
    "hugging_face": own.opened_hugging_face,
    "ray_data": streamed.opened,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenedExamples:
    """Examples, found and counted. Make it with `of`."""

    given: Examples
    form: Form

    @classmethod
    def of(cls, given: Examples) -> OpenedExamples:
        """Finds files, and calls a function that makes a dataset.

        Raises:
            ConfigurationError, DataError: they are not what was said.
        """
        return cls(given=given, form=_FORMS[given.kind](given.arguments))

    @property
    def rows(self) -> int | None:
        """See `Source.rows`."""
        return self.form.rows

    @property
    def heading(self) -> None:
        """See `Source.heading`: there is no table."""
        return

    @property
    def roles_said(self) -> tuple[str, ...]:
        """See `Source`."""
        return ()

    @property
    def sparse(self) -> bool:
        """See `Source.sparse`."""
        return False

    @property
    def function(self) -> str:
        """The name of the user's function that makes the dataset; empty where there is none."""
        return str(self.given.arguments["function"]) if self.given.kind == "named" else ""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, by their number; empty where labels have none."""
        return getattr(self.form, "classes", ())

    def numbered_like(self, train: OpenedExamples, name: str) -> OpenedExamples:
        """The same examples, whose classes have the numbers that they have in the channel that is trained on.

        Args:
            train: that channel's.
            name: its name, for messages.

        Raises:
            DataError: it lacks one of the classes.
        """
        if not self.classes or not train.classes or self.classes == train.classes:
            return self
        if new := [each for each in self.classes if each not in train.classes]:
            raise DataError(
                f"class {new[0]!r} is none of channel {name!r}, which has "
                f"{', '.join(map(repr, train.classes[:_SHOWN]))}{', ...' if len(train.classes) > _SHOWN else ''}; "
                "give that one examples of it, or take it out"
            )
        return replace(self, form=replace(self.form, classes=train.classes))  # type: ignore[type-var]

    @property
    def streams(self) -> bool:
        """Whether it is a Ray Dataset, of which a record keeps nothing."""
        return self.given.kind not in KINDS

    def describe(self) -> dict[str, Any]:
        """See `Channel.describe`."""
        return {
            "kind": self.given.kind,
            "rows": self.rows,
            "files": list(self.given.arguments.get("paths") or self._folder),
            "target": None,
            **self.form.described,
        }

    @property
    def _folder(self) -> list[str]:
        return [self.given.arguments["folder"]] if "folder" in self.given.arguments else []

    def fingerprint(self) -> str | None:
        """See `Channel.fingerprint`: of files' names, sizes and times; of a function, its name and arguments."""
        if self.streams:
            return None
        words = {name: value for name, value in self.given.arguments.items() if name not in ("paths", "folder")}
        said = repr((self.given.kind, sorted(words.items(), key=str), self.rows))
        return fingerprint.of_names(said, self._listed)

    def parts(self) -> Parts:
        """See `Channel.parts`."""
        rows = {} if self.rows is None else {"the number of rows": str(self.rows)}
        return {**fingerprint.parts_of_names(self._listed), **rows}

    @property
    def _listed(self) -> list[tuple[str, int, int]]:
        files = self.form.located.files if self.form.located else ()
        return [(file.below, file.size, file.written_ns) for file in files]

    def reopened_with(self) -> dict[str, Any]:
        """What opens the same again, as JSON takes it."""
        return {} if self.streams else {"examples": self.given.kind, "arguments": dict(self.given.arguments)}

    def samples(self) -> list[str]:
        """Paths of some of the files, of those on disks."""
        found = self.form.located
        if found is None or found.scheme:
            return []
        return [file.path for file in found.files[:: -(-len(found.files) // SAMPLES)]]

    def look(self) -> None:
        """See `Source.look`: there are no labels to check."""
        return

    def read(self, rank: int, world_size: int) -> NoReturn:
        """See `Source.read`: there is no table."""
        raise no_table(self.given.kind)

    def place(self, num_workers: int) -> PlacedExamples:
        """See `Source.place`: files stay where they are.

        Raises:
            ConfigurationError: 0 workers and a Ray Dataset.
        """
        if self.streams and num_workers == 0:
            raise ConfigurationError(
                "a ray.data.Dataset lives on a Ray cluster, and num_workers=0 trains without one; "
                "give num_workers=1 or more"
            )
        return PlacedExamples(kind=self.given.kind, form=self.form)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedExamples:
    """Examples on their way to workers."""

    kind: str
    form: Form

    @property
    def rows(self) -> int | None:
        """See `Source.rows`."""
        return self.form.rows

    def dataset(self) -> Any:
        """A map-style or iterable dataset of all examples, the same on every worker."""
        return self.form.opened()

    def read(self, rank: int, world_size: int) -> NoReturn:
        """See `Source.read`: there is no table."""
        raise no_table(self.kind)

    def each(self, rank: int, world_size: int) -> NoReturn:
        """See `read`."""
        raise no_table(self.kind)

    def read_whole(self) -> Table:
        """See `read`."""
        self.read(0, 1)


def no_table(kind: str) -> ConfigurationError:
    """The error of whoever asks examples for a table's rows."""
    return ConfigurationError(
        f"Examples.{kind} is a dataset for PyTorch, and no table; give .csv or .parquet files, a frame or an array"
    )
