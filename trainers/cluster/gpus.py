"""GPUs of a gang's peers on a node, made visible to each of its workers by Ray Train's own switch.

Train's controller and the workers read it, with the rest of a run's configuration; so it imports nothing else.
"""

from __future__ import annotations

from ray.train.backend import Backend, BackendConfig


class _SharedGpus(Backend):
    """Nothing but Ray Train's own word for it: the workers on a node see the GPUs of all of them."""

    share_cuda_visible_devices: bool = True


class PeersGpus(BackendConfig):
    """Backend of workers that see their peers' GPUs on their node, as those of `ray.train.torch.TorchTrainer` do.

    NCCL copies from GPU to GPU of a node only where each process sees both; else what it sends goes through the host.
    Ray Train sets `CUDA_VISIBLE_DEVICES` before a worker runs anything, where it asks for GPUs at all.
    """

    @property
    def backend_cls(self) -> type[Backend]:
        """See `ray.train.backend.BackendConfig`."""
        return _SharedGpus
