"""Made-up results of the checks on GPUs."""

from __future__ import annotations

from typing import Any

RECOVERED = {
    "error": "RuntimeError: no memory",
    "seconds_to_the_error": 0.5,
    "seconds_to_the_next_end": 2.0,
    "workers_lost": 0,
    "same_workers": True,
    "difference": 1e-7,
}
PARTS: dict[str, dict[str, Any]] = {
    "losses": {"expected": [1.0], "found": [1.0], "difference": 2e-6},
    "worker": {"threads": 4.0, "gpus_seen": 2.0, "told_workers": 2.0},
    "starts": {"cold": [12.0], "warm": [0.02, 0.03, 0.04]},
    "memory": {"held_bytes": [512.0, 512.0], "trials": 2, "grown_bytes": 0.0},
    "out_of_memory": RECOVERED,
    "peer": RECOVERED,
    "assertion": {**RECOVERED, "workers_lost": 1, "same_workers": False},
    "xgboost": {"here": 0.5, "there": 0.5, "difference": 0.0},
    "step": {"here": [1.0, 1.0], "there": [0.99, 0.99]},
    "host_rows": {"here": [1.0], "there": [0.9], "equal": True},
}
ON_GPUS = {name: {"ran_on": "2 x A GPU, NCCL", **part} for name, part in PARTS.items()}
