"""The `hpo` command."""

from hpo.cli.command import app, main

__all__ = ["app", "main"]
