"""The `hpo` command."""

from hpo.cli.command import app, main
from hpo.cli.options import AllowCode
from hpo.cli.terminal import errors_in_words

__all__ = ["AllowCode", "app", "errors_in_words", "main"]
