"""Keys of a channel of examples: images, text, columns, a dataset of one's own, or one of Hugging Face's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from hpo.job_file.known_keys import Give, Strict
from hpo.jobs import NamedCode, look_here_too
from trainers.channels import KINDS, Examples
from trainers.errors import ConfigurationError
from trainers.process import PLACE

Paths = Annotated[str | list[str] | None, Give("a path, or a list of paths")]
Size = Annotated[int, Field(ge=1)]

OPTIONS = {
    "images": ("size", "mode", "image", "target"),
    "text": ("each", "labelled"),
    "columns": ("only",),
    "named": ("arguments",),
    "hugging_face": ("split", "only"),
}
"""Keys beside each of `KINDS`."""


class ExampleKeys(Strict):
    """Where a channel's examples are, for a trainer of PyTorch functions."""

    images: Paths = Field(
        None,
        description="a folder of images, with a folder for each class, or Parquet files with their bytes; for a "
        "trainer of type torch or parameter_server, as are text, columns, named and hugging_face",
    )
    text: Paths = Field(None, description="files of text in UTF-8, or a folder of .txt files")
    columns: Paths = Field(None, description="Parquet files whose columns have various shapes and types")
    named: Annotated[str | None, Give("a module and a function, such as my_data:train_rows")] = Field(
        None,
        pattern=PLACE,
        description="a function that makes a torch.utils.data.Dataset or IterableDataset, as module:name, which runs "
        "with --allow-code alone",
    )
    hugging_face: str | None = Field(None, min_length=1, description="a folder that Dataset.save_to_disk wrote")
    size: Annotated[Size | list[Size] | None, Give("pixels, such as 64, or [height, width]")] = Field(
        None, description="of images: what they are resized to; null leaves them as they are"
    )
    mode: Literal["RGB", "L"] = Field("RGB", description="of images: L is one channel of grey")
    image: str | None = Field(None, description="of images in Parquet files: the column of bytes; null is the only one")
    each: Literal["line", "file"] = Field("line", description="of text: what an example is")
    labelled: bool = Field(False, description="of text: whether the folder that a file is in is its class")
    only: list[str] | None = Field(None, description="of columns and hugging_face: those to read; null is all")
    arguments: dict[str, Any] = Field(default_factory=dict, description="of named: the function's arguments")
    split: str | None = Field(None, description="of hugging_face: which part of a DatasetDict")

    @property
    def kind(self) -> str:
        """The one of `KINDS` that it is; empty where it is none."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), "")

    def check_one(self, *others: str) -> None:
        """Refuses no source and several, and keys that are of another one.

        Args:
            *others: keys of sources beside `KINDS`.

        Raises:
            ConfigurationError: naming them.
        """
        if sum(getattr(self, name) is not None for name in (*others, *KINDS)) != 1:
            raise ConfigurationError(
                "give either path, for rows, or folder, for files as they are; or, for PyTorch, one of "
                f"{', '.join(KINDS)}"
            )
        own: Sequence[str] = (self.kind, *OPTIONS.get(self.kind, ()))
        of = {option: kind for kind, options in OPTIONS.items() for option in options}
        for name in type(self).model_fields:
            foreign = name not in own if self.kind else of.get(name, "") and name != "target"
            if foreign and name in self.model_fields_set and getattr(self, name) is not None:
                which = f"is not for {self.kind}" if self.kind else f"is for {of[name]}"
                raise ConfigurationError(f"{name} {which}; leave it out")

    def code(self, key: str) -> list[NamedCode]:
        """The function that it names; `key` is the channel's."""
        return [NamedCode(key=f"{key}.named", name=self.named)] if self.named else []

    def examples(self) -> Examples:
        """What it says, in the Python API's form; only of one that has a `kind`."""
        if self.named is not None:
            look_here_too()
            return Examples.named(self.named, **self.arguments)
        first = getattr(self, self.kind)
        made: Examples = getattr(Examples, self.kind)(first, **{key: getattr(self, key) for key in OPTIONS[self.kind]})
        return made
