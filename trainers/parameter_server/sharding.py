"""Distribution of parameters over servers by size."""

from __future__ import annotations

from collections.abc import Sequence

from trainers.errors import ConfigurationError


def spread(sizes: Sequence[int], servers: int) -> tuple[int, ...]:
    """Gives each parameter, whole, to a server: the largest first, each to the server that holds least so far.

    No server then holds more than 4/3 of the fullest one's share in the best distribution (Graham, 1969), and none is
    empty.

    Args:
        sizes: of the parameters, in bytes.
        servers: how many there are.

    Returns:
        The server of each parameter, from 0.

    Raises:
        ConfigurationError: there are more servers than parameters.
    """
    if servers > len(sizes):
        raise ConfigurationError(
            f"there are {servers} parameter servers (hyperparameter 'num_servers', or a worker for each with "
            f"server_placement 'each'), and the optimizer has {len(sizes)} parameter tensors to train, which are not "
            f"divided; give {len(sizes)} servers or fewer"
        )
    loads = [(0, 0, server) for server in range(servers)]
    home = [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda index: (-sizes[index], index)):
        # By number next: a parameter without elements goes to a server that has none yet.
        size, count, server = min(loads)
        home[index] = server
        loads[server] = (size + sizes[index], count + 1, server)
    return tuple(home)
