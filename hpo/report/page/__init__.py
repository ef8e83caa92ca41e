"""The HTML page of a job, or of several side by side."""
