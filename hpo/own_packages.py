"""A check that Python finds Warmband's package `trainers`, and not a folder of the user's that has the same name."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[1]
"""The folder that holds Warmband's packages."""


def check_own(package: str) -> None:
    """Check that a package of Warmband's is not hidden by another module of that name; nothing is imported.

    Args:
        package: its name.

    Raises:
        ImportError: another module comes first on Python's path; the message names its file and the remedy.
    """
    loaded = sys.modules.get(package)
    spec = find_spec(package) if loaded is None else loaded.__spec__
    if spec is None:
        raise ImportError(f"Warmband's package {package!r} is not in {str(_FOLDER)!r}; install Warmband again")
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.origin else ())]
    if not any(Path(place).resolve() == _FOLDER / package for place in places):
        place = places[0] if places else package
        raise ImportError(
            f"Warmband needs its own package {package!r}, and Python finds {place!r} first, which is not Warmband's; "
            "rename that, or leave its folder out of Python's path: by python -P, or by another PYTHONPATH"
        )
