"""What a process sets up for itself: threads, scratch folders, its end, the names of users' code."""
