"""Tables of images and instance types: which trainer an image stands for, and what a worker of a type holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hpo.serve.places import NO_PLACES, Places
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
        places: see `ServeSettings`.
    """

    images: tuple[Image, ...]
    instances: tuple[Instance, ...]
    allow_code: bool = False
    places: Places = NO_PLACES

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

_UP_TO_EIGHT = {1: "xlarge 2xlarge 4xlarge 8xlarge 16xlarge", 4: "12xlarge 24xlarge", 8: "48xlarge"}

GPUS: dict[str, dict[int, str]] = {
    "ml.p2": {1: "xlarge", 8: "8xlarge", 16: "16xlarge"},
    "ml.p3": {1: "2xlarge", 4: "8xlarge", 8: "16xlarge"},
    "ml.p3dn": {8: "24xlarge"},
    "ml.p4d": {8: "24xlarge"},
    "ml.p4de": {8: "24xlarge"},
    "ml.p5": {1: "4xlarge", 8: "48xlarge"},
    "ml.p5e": {8: "48xlarge"},
    "ml.p5en": {8: "48xlarge"},
    "ml.p6-b200": {8: "48xlarge"},
    "ml.p6-b300": {8: "48xlarge"},
    "ml.g4dn": {1: "xlarge 2xlarge 4xlarge 8xlarge 16xlarge", 4: "12xlarge"},
    "ml.g5": _UP_TO_EIGHT,
    "ml.g6": _UP_TO_EIGHT,
    "ml.g6e": _UP_TO_EIGHT,
}
"""Sizes of each family of instances by their GPUs.

Up to ml.p5 and ml.g5 as `instance_gpu_info.json` of the SDK (2.257) has them, the later ones as EC2's pages of
accelerated instances have them: https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html.
"""

INSTANCES = (
    *(
        Instance(match=f"{family}.{size}", gpus=gpus)
        for family, sizes in GPUS.items()
        for gpus, names in sizes.items()
        for size in names.split()
    ),
    *(Instance(match=f"ml.{family}[0-9]*") for family in "cmrt"),
    Instance(match="local_gpu", gpus=1),
    Instance(match="local"),
)
"""A worker holds one CPU whatever the type, so that a laptop has room for those that a script names, and all GPUs.

Types with accelerators that are not listed, such as ml.trn1.32xlarge, are in the user's own table or refused.
"""


def read_tables(path: Path | None, *, allow_code: bool = False, places: Places = NO_PLACES) -> Tables:
    """The tables: entries of a file of the user's before those that are built in.

    Args:
        path: YAML with `images`, of `match` and `trainer`, and `instances`, of `match`, `cpus` and `gpus`; or None.
        allow_code: whether programs of clients may run.
        places: see `Tables`.

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
    return Tables(
        images=(*own.images, *IMAGES),
        instances=(*own.instances, *INSTANCES),
        allow_code=allow_code,
        places=places,
    )


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
