"""Gradients of all workers, made into one update."""
