"""Models of services: the shapes of operations, as botocore has them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from botocore.loaders import create_loader
from botocore.model import ServiceModel

_CLASSES = {r"\p{L}": r"\w", r"\p{N}": r"\d", r"\p{Z}": r"\s", r"\p{Alnum}": "a-zA-Z0-9"}
"""Classes of letters in the models' patterns, as Python writes them."""


@cache
def model(service: str) -> Any:
    """The model of a service, by botocore's name of it."""
    return ServiceModel(create_loader().load_service_model(service, "service-2"), service)


@cache
def pattern(text: str) -> re.Pattern[str]:
    """A model's pattern, which holds for all of a value; one that Python does not know holds for any."""
    for java, python in _CLASSES.items():
        text = text.replace(java, python)
    try:
        return re.compile(text, re.DOTALL)
    except re.error:
        return re.compile(".*", re.DOTALL)
