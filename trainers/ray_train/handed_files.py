"""Checkpoint of Ray Train's form that notes whether its files were looked for."""

from __future__ import annotations

from ray.train import Checkpoint


class HandedFiles(Checkpoint):
    """A folder of files, handed to a function; `opened` once anything has asked for its path, as every reader does."""

    opened = False

    @property
    def path(self) -> str:
        """The folder."""
        self.opened = True
        return self._path

    @path.setter
    def path(self, path: str) -> None:
        self._path = path
