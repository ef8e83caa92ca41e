"""Errors of the Python API in the words of a job file, with line numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from hpo.job_file.yaml_file import JobFile, Keys, Problem
from trainers.errors import ConfigurationError

HYPERPARAMETERS, RANGES = ("trainer", "hyperparameters"), ("tuning", "ranges")

_WORDS = {
    "ContinuousParameter: ": "",
    "IntegerParameter: ": "",
    "CategoricalParameter: ": "",
    "NormalParameter: ": "",
    "a ContinuousParameter has": "a range of type continuous has",
    "min_value": "min",
    "max_value": "max",
    "scaling_type": "scaling",
    "max_resource in HyperbandStrategyConfig": "tuning.hyperband.max_resource",
    "the trainer's length": "trainer.length",
    "train_loop_per_worker": "train_loop",
    "in the trainer's hyperparameters": "in trainer.hyperparameters",
    " to fit()": " under data.channels",
    # The trainer's own words about one hyperparameter, and about several.
    "hyperparameter '": "hyperparameters '",
}
"""What the Python API calls things, and what a job file does."""


@contextmanager
def about(*keys: str) -> Iterator[None]:
    """Says errors of the Python API in the job file's words, and which part of the file they are about."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(": ".join([*keys, in_its_words(str(error))])) from error


@contextmanager
def placed(file: JobFile | None, group: str) -> Iterator[None]:
    """Says errors of the Python API in the job file's words, with the line that they are about.

    Args:
        file: what the job came from; None where it did not come from a file.
        group: of the keys that the API is given meanwhile.
    """
    try:
        with about(group):
            yield
    except ConfigurationError as error:
        if file is None:
            raise
        text = str(error)
        raise file.refusal([Problem(keys=_keys(file, group, text), text=text)]) from error


def in_its_words(text: str) -> str:
    """An error of the Python API, in the words of a job file."""
    for word, own in _WORDS.items():
        text = text.replace(word, own)
    return text


def _keys(file: JobFile, group: str, text: str) -> Keys:
    """The keys that an error is about: the first that it names and the file has, else the whole group."""
    tables = (RANGES, HYPERPARAMETERS) if group == "tuning" else (HYPERPARAMETERS,)
    field = re.match(rf"{group}: (\w+)", text)  # An error begins with the argument that it is about.
    if field and (group, field[1]) in file.places:
        within = [(group, field[1], word) for word in re.findall(r"\w+", text)]
        return next((keys for keys in within if keys in file.places), (group, field[1]))
    named = re.findall(r"['`](\w+)['`]|\b(\w+_\w+)\b", text)
    for name in (quoted or word for quoted, word in named):
        for keys in ((group, name), *((*values, name) for values in tables), (name,)):
            if keys in file.places:
                return keys
    return (group,)
