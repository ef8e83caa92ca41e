"""The pictures of a job, each interactive for the page and still for a file."""
