"""Rules for a channel's labels, checked at every reading."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.checking import some_of
from trainers.errors import DataError

MOST_CLASSES = 20
"""Labels that are all whole numbers from 0 to at most so many are told as classes; others as numbers."""

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?", re.ASCII)
_SEPARATED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(\.\d+)?", re.ASCII)


def label_summary(labels: NDArray[np.float32]) -> dict[str, Any]:
    """Summarize labels for `predicts`; JSON.

    Args:
        labels: all of them, finite; or one of each different value.

    Returns:
        The count of classes under "classes" where labels are the whole numbers from 0 on, none left out, and few; else
        the range under "least" and "greatest".
    """
    least, greatest = float(labels.min()), float(labels.max())
    if least == 0 and greatest < MOST_CLASSES and (labels == np.floor(labels)).all():
        found = np.bincount(labels.astype(np.intp))
        if len(found) > 1 and found.all():
            return {"classes": len(found)}
    return {"least": least, "greatest": greatest}


def predicts(channel: Mapping[str, Any]) -> str:
    """Return what a model of a channel predicts, such as "churned, 2 classes" or "price, a number from 3 to 90".

    Args:
        channel: as `Channel.describe` has it; of other channels than rows there is nothing to say.
    """
    if "target" not in channel:
        return ""
    target = channel.get("target")
    name = "the label" if target is None else target if isinstance(target, str) else f"column {target}"
    if classes := channel.get("classes"):
        more = ", ..." if len(classes) > MOST_CLASSES else ""
        return f"{name}, {_count(len(classes))} ({', '.join(map(_in_list, classes[:MOST_CLASSES]))}{more})"
    seen = channel.get("labels") or {}
    if "classes" in seen:
        return f"{name}, {_count(seen['classes'])}"
    return f"{name}, a number from {seen['least']:g} to {seen['greatest']:g}" if "least" in seen else name


def label_name(label: float, classes: Sequence[str]) -> str:
    """A label as the user knows it: in quotes the text that it stands for, else its number.

    Args:
        label: as it is trained on.
        classes: text labels by their numbers; empty where labels are numbers.
    """
    named = label.is_integer() and 0 <= label < len(classes)
    return repr(classes[int(label)]) if named else f"{label:g}"


def separated_number(classes: Sequence[str]) -> str:
    """The first text label with thousands separators, where all of them are numbers, some of them so; else empty."""
    separated = [text for text in classes if _SEPARATED.fullmatch(text)]
    whole = len(separated) == sum(not _NUMBER.fullmatch(text) for text in classes)
    return separated[0] if separated and whole else ""


def _in_list(name: object) -> str:
    """A class's name, in quotes where a comma in it would make it look like two."""
    return repr(name) if "," in str(name) else str(name)


def _count(classes: int) -> str:
    return f"{classes} class{'es' if classes != 1 else ''}"


def prepared(channel: Mapping[str, Any]) -> list[str]:
    """Return sentences on columns of a channel that are left out or converted; none where nothing is.

    Args:
        channel: as `Channel.describe` has it.
    """
    found = []
    identifiers = list(channel.get("identifiers") or ())
    if identifiers:
        several = len(identifiers) > 1
        found.append(
            f"{some_of(list(map(repr, identifiers)))} {'are' if several else 'is'} left out, as "
            f"{'they identify' if several else 'it identifies'} rows; keep={identifiers!r} keeps "
            f"{'them' if several else 'it'}"
        )
    if dropped := [name for name in channel.get("dropped") or () if name not in identifiers]:
        found.append(f"{some_of(list(map(repr, dropped)))} {'are' if len(dropped) > 1 else 'is'} left out")
    if dates := channel.get("dates"):
        several = len(dates) > 1
        found.append(f"{some_of(list(map(repr, dates)))} {'are' if several else 'is'} read as days since 1970-01-01")
    if (missing := channel.get("missing")) is not None:
        found.append(f"{missing:g} stands for a missing value")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRule:
    """One expectation, and who has it.

    Args:
        who: what needs it, as errors name it: "objective 'binary:logistic'".
        takes: the labels it takes, in words.
        remedy: what to do about others.
        least: the least label.
        most: the greatest label.
        open: `least` itself is refused.
        whole: labels are whole numbers.
        classes: how many different labels all rows together hold at least.
        names: text labels by their numbers; empty where labels are numbers.
    """

    who: str
    takes: str
    remedy: str
    least: float = -math.inf
    most: float = math.inf
    open: bool = False
    whole: bool = False
    classes: int = 1
    names: tuple[str, ...] = ()

    def check(self, labels: NDArray[np.float32], *, complete: bool) -> None:
        """Raises where labels are not what is expected.

        Args:
            labels: those of one worker's rows, or of all.
            complete: they are all; a shard may lack a class by chance.

        Raises:
            DataError: naming a label and the remedy.
        """
        refused = (labels < self.least) | (labels > self.most)
        if self.open:
            refused |= labels == self.least
        if self.whole:
            refused |= labels != np.floor(labels)
        count = int(refused.sum())
        if count:
            first = label_name(float(labels[int(refused.argmax())]), self.names)
            many = f"{count} labels, {first} the first of them, are" if count > 1 else f"the label {first} is"
            raise DataError(f"{many} not what {self.who} takes, {self.takes}: {self.remedy}")
        if complete and len(labels) and self.classes > 1:
            self._check_classes(labels)

    def _check_classes(self, labels: NDArray[np.float32]) -> None:
        if labels.min() == labels.max():
            every = label_name(float(labels[0]), self.names)
            raise DataError(f"every label is {every}, and {self.who} takes {self.takes}: {self.remedy}")
        if self.classes > 2 and (count := len(np.unique(labels))) < self.classes:
            raise DataError(f"labels are of {count} classes, and {self.who} takes {self.takes}: {self.remedy}")
