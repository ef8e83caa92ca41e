"""Holdings of a worker's process: processor cores and GPUs of its node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SLACK = 1e-6
"""Parts of GPUs are not exact: a tenth of 30 CPUs is 3."""


def cores(held: Mapping[str, float], node: Mapping[str, float], usable: int) -> int:
    """The cores that a worker may use, 1 or more.

    They are the CPUs that it holds. `ScalingConfig(use_gpu=True)` asks Ray for a GPU and no CPU: such a worker uses its
    GPUs' part of the node's CPUs, since one core would feed no GPU.

    Args:
        held: the worker's resources, in Ray's units.
        node: the resources of its node, in Ray's units.
        usable: cores that its process may run on.
    """
    if cpus := held.get("CPU"):
        return max(1, int(cpus))
    gpus, there = held.get("GPU", 0.0), node.get("GPU", 0.0)
    if not gpus or not there:
        return 1
    return max(1, int(min(node.get("CPU") or usable, usable) * min(1.0, gpus / there) + _SLACK))


def ordinals(held: Sequence[str], visible: str | None) -> tuple[int, ...]:
    """The numbers under which CUDA knows a worker's GPUs in its process.

    Args:
        held: the ids that Ray gave it, such as ["2", "3"].
        visible: the process's `CUDA_VISIBLE_DEVICES`, where GPUs of its peers may stand as well; None or empty: it sees
            all of the machine's.
    """
    seen = [name.strip() for name in visible.split(",")] if visible else []
    return tuple(seen.index(gpu) if gpu in seen else int(gpu) for gpu in held if gpu in seen or gpu.isdigit())


def device(cores: int, gpus: Sequence[str] = ()) -> str:
    """What a worker computes on, in words.

    Args:
        cores: that it may use.
        gpus: the ids that Ray gave it.
    """
    if gpus:
        return f"{'GPU' if len(gpus) == 1 else 'GPUs'} {', '.join(gpus)}"
    return "1 core" if cores == 1 else f"{cores} cores"
