"""Keys of a trial's details: facts beside its metrics, which its gang notes, and which jobs and pages tell."""

NO_MODEL = "no_model"
"""Whether the program has left nothing in `SM_MODEL_DIR`."""
TRAINED_AGAIN = "units_trained_again"
"""How many units a trial trained that it had before, since it began again, or went on from before its rung."""
WARNINGS = "warnings"
"""Sentences that the user should read, each by a word for its kind; a job says one of each kind."""
