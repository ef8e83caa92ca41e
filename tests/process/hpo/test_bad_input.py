"""Bad input to the Python API: one error that names the field, the value and the remedy, before anything starts."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes import printed


def test_ray_is_not_started_for_any_of_it(home: Path) -> None:
    """In a process of its own, which no other test has started Ray in."""
    program = """
        import ray
        from tests.support.bad_input import GOOD, make, rows
        from trainers import WarmbandError
        for channels in ({}, {"train": GOOD}, {"train": "no.csv"}, {"train": GOOD, "validation": rows([1.0] * 8)}):
            try:
                make().fit(channels)
            except WarmbandError as error:
                print(type(error).__name__)
        assert not ray.is_initialized()
    """
    assert printed(program).split() == ["ConfigurationError", "ConfigurationError", "DataError", "DataError"]
