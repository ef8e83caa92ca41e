"""The published experiments and the benchmarks, as scripts that a user runs."""

from trainers.loopback import on_loopback

# Before any of them imports Ray by itself, which would then listen on all addresses.
with on_loopback():
    import ray  # noqa: F401
