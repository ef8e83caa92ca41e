"""All that going on from a checkpoint to the same end takes."""
