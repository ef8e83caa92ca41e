"""Fair shares of a cluster: what each of the jobs on it may hold."""
