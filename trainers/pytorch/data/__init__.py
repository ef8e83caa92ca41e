"""Batches of a worker's rows, drawn alike after every pause."""
