"""Parts of `experiments.early_stopping`: problems, searches, and what came out."""
