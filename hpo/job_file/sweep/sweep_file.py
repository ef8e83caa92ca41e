"""A sweep file as it is read: its values, what is noted of them, and what has no counterpart."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpo.job_file import yaml_file
from hpo.job_file.known_keys import LIKENESS
from hpo.job_file.yaml_file import JobFile, Keys, Place, Problem, dotted, shown
from trainers.checking import did_you_mean


@dataclass(slots=True, kw_only=True)
class Sweep:
    """A sweep file, and what is said of it line by line.

    Args:
        file: the file as it is read.
        notes: what was chosen or left out, by the keys that it is about.
        problems: what cannot be carried over.
    """

    file: JobFile
    notes: list[tuple[Keys, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def read(cls, path: str | Path) -> Sweep:
        """Reads a sweep file; what its keys mean is not looked at.

        Args:
            path: the YAML file.

        Raises:
            ConfigurationError: it is not there, not YAML, or holds no keys.
        """
        return cls(file=yaml_file.read(path, kind="sweep file"))

    @property
    def values(self) -> dict[str, Any]:
        """The file's keys and values."""
        return self.file.values

    def note(self, keys: Keys, text: str) -> None:
        """Notes what was chosen, or left out.

        Args:
            keys: of the value that it is about; empty where the file has none.
            text: the note.
        """
        self.notes.append((keys, text))

    def refuse(self, keys: Keys, text: str) -> None:
        """Notes what cannot be carried over.

        Args:
            keys: of the value that it is about.
            text: it, and the remedy.
        """
        self.problems.append(Problem(keys=keys, text=text))

    def group(self, *keys: str) -> dict[str, Any]:
        """The group of keys that is there; empty where there is none, or something else, which is then refused."""
        value: Any = self.values
        for key in keys:
            value = value.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.refuse(keys, f"{dotted(keys)} is {shown(value)}; give a group of keys")
            return {}
        return value

    def check_known(self, given: Mapping[str, Any], known: Collection[str], *keys: str) -> None:
        """Refuses keys of a group that W&B does not know, either.

        Args:
            given: the group.
            known: its keys.
            keys: of the group.
        """
        for key in given:
            if key not in known:
                near = did_you_mean(key, known, LIKENESS) or f"; known here are {', '.join(known)}"
                self.refuse((*keys, key), f"{dotted((*keys, key))}: unknown key{near}")

    def lines(self) -> list[str]:
        """The notes, by line; those about the whole file come first."""
        placed = [(self.file.place(keys) or Place(), text) for keys, text in self.notes]
        told = sorted(placed, key=lambda each: each[0])
        return [f"{f'{place}: ' if place != Place() else ''}{' '.join(text.split())}" for place, text in told]
