"""One parameter server: its state, its sockets, and its Ray actor."""
