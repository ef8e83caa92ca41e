"""Workers and parameter servers simulated in one process."""
