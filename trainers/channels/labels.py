"""Rules for a channel's labels, checked at every reading."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainers.errors import DataError


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
    """

    who: str
    takes: str
    remedy: str
    least: float = -math.inf
    most: float = math.inf
    open: bool = False
    whole: bool = False
    classes: int = 1

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
            first = float(labels[int(refused.argmax())])
            many = f"{count} labels, {first:g} the first of them, are" if count > 1 else f"the label {first:g} is"
            raise DataError(f"{many} not what {self.who} takes, {self.takes}: {self.remedy}")
        if complete and len(labels) and self.classes > 1:
            self._check_classes(labels)

    def _check_classes(self, labels: NDArray[np.float32]) -> None:
        if labels.min() == labels.max():
            raise DataError(f"every label is {float(labels[0]):g}, and {self.who} takes {self.takes}: {self.remedy}")
        if self.classes > 2 and (count := len(np.unique(labels))) < self.classes:
            raise DataError(f"labels are of {count} classes, and {self.who} takes {self.takes}: {self.remedy}")
