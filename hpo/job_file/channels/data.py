"""The section `data` of a job file: a named dataset, or files by channel."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from hpo.job_file.channels.examples import ExampleKeys
from hpo.job_file.known_keys import LIKENESS, Give, Strict
from trainers.channels import ROLES, WHOLE, Distribution, gathered
from trainers.checking import did_you_mean
from trainers.datasets import DATASETS
from trainers.errors import ConfigurationError

Positive = Annotated[int, Field(ge=1)]
Column = Annotated[str | int | None, Give("a column's name, or its position")]
Columns = Annotated[str | int | list[str | int] | None, Give("a column, or a list of columns")]

OF_ROWS = ("target", *ROLES, "categorical", "drop", "keep", "missing", "header", "delimiter")
"""Keys of a channel that is read as rows."""


class Files(ExampleKeys):
    """Where a channel's rows are, its files as they are, or its examples."""

    path: Annotated[str | list[str] | None, Give("a path, or a list of paths")] = Field(
        None,
        description="CSV, Parquet or libsvm files, which are read as rows: a path, a folder, a pattern such as "
        "part-*.csv, a .manifest, a URI (s3://, gs://), or a list of these; null where a folder is given",
    )
    folder: Annotated[str | None, Give("a folder's path, or its URI")] = Field(
        None, min_length=1, description="files of any kind, as they are, for a trainer of type script; null is rows"
    )
    distribution: Distribution | None = Field(
        None,
        description="FullyReplicated gives all files to every worker, ShardedByS3Key deals them out; null does the "
        "former with a folder, and deals out rows in balance",
    )
    target: Column = Field(
        None,
        description="the column to predict, by name or position from 0; null is the first of files without names, and "
        "else the one column that is called target, label, y, class or outcome",
    )
    weight: Column = Field(None, description="the column of rows' weights; null weighs all alike")
    base_margin: Columns = Field(None, description="margins that boosting begins at: a column, or one for each class")
    label_lower_bound: Column = Field(None, description="the column of what a label is at least, for survival:aft")
    label_upper_bound: Column = Field(None, description="that of what it is at most; infinite where nobody knows")
    qid: Column = Field(None, description="that of the query whose rows are ranked, which go to one worker together")
    categorical: Columns = Field(None, description="columns of categories, text or whole numbers")
    drop: Columns = Field(None, description="columns to leave out")
    keep: Columns = Field(None, description="columns to keep that look like identifiers, which are left out")
    missing: float | None = Field(None, description="number that stands for a missing value; null has none")
    header: bool | None = Field(None, description="whether a CSV file's first line has names; null looks for itself")
    delimiter: Annotated[str, Give("one character, such as ';'")] = Field(
        ",", min_length=1, max_length=1, description="what separates the cells of a CSV file"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_one("path", "folder")
        if self.kind:
            return self
        if self.folder is not None and (given := [name for name in OF_ROWS if name in self.model_fields_set]):
            raise ConfigurationError(f"{given[0]} is for rows; leave it out")
        return self

    def open(self, name: str) -> Any:
        """The channel of that name."""
        from trainers.channels import Channel, Folder

        if self.kind:
            return Channel.of(self.examples(), name=name)
        if self.folder is not None:
            return Channel.of(Folder(self.folder, self.distribution or WHOLE), name=name)
        return Channel.of(
            self.path, name=name, distribution=self.distribution, **{key: getattr(self, key) for key in OF_ROWS}
        )


class Data(Strict):
    """Either a named dataset, or files by channel."""

    dataset: str | None = Field(None, description="a dataset that has a name: see `hpo data list`")
    repeat: Positive = Field(1, description="how often each train and validation row of the dataset appears")
    channels: Annotated[dict[str, Files] | None, Give("names and files, such as {train: {path: train.csv}}")] = Field(
        None, description="files by the channel's name; train is what models learn from, the others score them"
    )

    @field_validator("dataset")
    @classmethod
    def _known(cls, dataset: str | None) -> str | None:
        if dataset is not None and dataset not in DATASETS:
            near = did_you_mean(dataset, DATASETS, LIKENESS)
            raise ConfigurationError(f"there is no dataset {dataset!r}; give one of {', '.join(DATASETS)}{near}")
        return dataset

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.dataset is None) == (self.channels is None):
            raise ConfigurationError("give either dataset or channels")
        channels = self.channels or {}
        rows = [name for name, files in channels.items() if files.folder is None]  # Who takes folders, takes any names.
        if self.channels is not None and "train" not in channels and (rows or not channels):
            raise ConfigurationError(f"channels are {', '.join(self.channels) or 'none'}; give one called train")
        return self

    def open(self, data_dir: str | None) -> dict[str, Any]:
        """The channels, as `HyperparameterTuner.fit` takes them."""
        if self.channels is not None:
            return dict(gathered({name: partial(files.open, name) for name, files in self.channels.items()}))
        from hpo.jobs import dataset_channels

        return dict(dataset_channels(str(self.dataset), data_dir=data_dir, repeat=self.repeat))
