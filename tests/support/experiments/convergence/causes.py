"""Runs with all causes of divergence, drawn by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from experiments.convergence.causes import Run

RUNS = st.builds(
    lambda workers, mode, rate, momentum, batch: Run(
        workers=workers,
        mode=mode,
        hyperparameters={
            "lr": rate,
            "momentum": momentum,
            "per_worker_batch_size": batch,
            "link_bytes_per_second": 1e6,
        },
    ),
    st.integers(2, 64),
    st.sampled_from(["async", "bounded", "ring", "sync"]),
    st.floats(1e-6, 10),
    st.floats(0, 0.999),
    st.integers(1, 4096),
)
