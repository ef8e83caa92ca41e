"""Other ways to do the work of a benchmark: Ray Tune, torchrun, Optuna, plain processes."""
