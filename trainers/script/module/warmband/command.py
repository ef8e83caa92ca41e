"""The `hpo` command as it is installed: a module that no file of a user's hides, which says where one hides `hpo`."""

from __future__ import annotations

import sys

from warmband import installed


def main() -> None:
    """Run the `hpo` command, and exit with its code: 2 where a file of the user's hides a package of Warmband's."""
    try:
        installed("hpo")
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    from hpo.cli import main as run

    run()
