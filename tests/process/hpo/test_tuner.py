"""Whole tuning jobs on a real cluster, through the public Python API."""

from __future__ import annotations

from tests.support.processes import printed


def test_threads_that_load_names_at_once_get_them() -> None:
    """Ray's own modules import each other in a circle, which two doors into it at once would fail in."""
    code = """
import threading, hpo, trainers
barrier, failed = threading.Barrier(2), []
def load(text):
    barrier.wait()
    try: exec(text, {})
    except BaseException as error: failed.append(error)
threads = [threading.Thread(target=load, args=(text,)) for text in (
    "from trainers import XGBoostTrainer", "from hpo import HyperparameterTuner")]
[thread.start() for thread in threads]
[thread.join(100) for thread in threads]
assert not failed, failed
"""
    printed(code)
