"""Tables of images and instance types: which trainer an image stands for, and what a worker of a type holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hpo.yaml_core import load
from trainers.errors import ConfigurationError

LENGTH = "WARMBAND_LENGTH"
"""The variable of an estimator's environment that says a program's length, as `trainer.length` of a job file does."""

Kind = Literal["xgboost", "script"]


class Image(BaseModel):
    """An image.

    Args:
        match: a regular expression that is found in the image's URI.
        trainer: what trains: "xgboost", or "script", which runs the program that the request names.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    match: str
    trainer: Kind


class Instance(BaseModel):
    """An instance type.

    Args:
        match: its name, in which `*` stands for anything.
        cpus: that a worker holds.
        gpus: likewise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    match: str
    cpus: float = Field(default=1.0, gt=0)
    gpus: int = Field(default=0, ge=0)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    images: list[Image] = []
    instances: list[Instance] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What there is; the first entry that fits counts.

    Args:
        images: by their URIs.
        instances: by their names.
        allow_code: whether programs of clients may run.
    """

    images: tuple[Image, ...]
    instances: tuple[Instance, ...]
    allow_code: bool = False

    def image(self, uri: str) -> Kind | None:
        """The trainer of an image; None where it is in no table."""
        return next((each.trainer for each in self.images if re.search(each.match, uri)), None)

    def instance(self, name: str) -> Instance | None:
        """What a worker of an instance type holds; None where it is in no table."""
        return next((each for each in self.instances if fnmatchcase(name, each.match)), None)


IMAGES = (
    Image(match=r"xgboost", trainer="xgboost"),
    Image(match=r"pytorch|tensorflow|huggingface|sklearn|scikit-learn|mxnet", trainer="script"),
)
"""Of the service's own images."""

INSTANCES = (
    Instance(match="ml.p[0-9]*", gpus=1),
    Instance(match="ml.g[0-9]*", gpus=1),
    Instance(match="ml.*"),
    Instance(match="local_gpu", gpus=1),
    Instance(match="local"),
)
"""A worker holds one CPU whatever the type, so that a laptop has room for those that a script names."""


def read_tables(path: Path | None, *, allow_code: bool = False) -> Tables:
    """The tables: entries of a file of the user's before those that are built in.

    Args:
        path: YAML with `images`, of `match` and `trainer`, and `instances`, of `match`, `cpus` and `gpus`; or None.
        allow_code: whether programs of clients may run.

    Raises:
        ConfigurationError: the file is missing or wrong, naming the entry.
    """
    own = _File() if path is None else _read(path)
    for each in own.images:
        try:
            re.compile(each.match)
        except re.error as error:
            raise ConfigurationError(
                f"{path}: images: match {each.match!r} is no regular expression: {error}"
            ) from None
    return Tables(images=(*own.images, *IMAGES), instances=(*own.instances, *INSTANCES), allow_code=allow_code)


def _read(path: Path) -> _File:
    try:
        found: Any = load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from None
    try:
        return _File.model_validate(found or {})
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigurationError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
