"""Public training programs: their job files, and generators of the data that they expect."""
