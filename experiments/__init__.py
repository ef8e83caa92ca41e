"""The published experiments and the benchmarks, as scripts that a user runs."""
