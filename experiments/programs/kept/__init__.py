"""Programs for measurements: one that stays loaded, and one that prints much."""
