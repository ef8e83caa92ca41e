"""What the Python API calls things, in the words of a job file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trainers.errors import ConfigurationError

_WORDS = {
    "ContinuousParameter: ": "",
    "IntegerParameter: ": "",
    "CategoricalParameter: ": "",
    "a ContinuousParameter has": "a range of type continuous has",
    "min_value": "min",
    "max_value": "max",
    "scaling_type": "scaling",
    "max_resource in HyperbandStrategyConfig": "tuning.hyperband.max_resource",
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


def in_its_words(text: str) -> str:
    """An error of the Python API, in the words of a job file."""
    for word, own in _WORDS.items():
        text = text.replace(word, own)
    return text
