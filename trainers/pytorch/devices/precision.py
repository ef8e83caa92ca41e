"""Check that a device computes in a precision, before anything is trained."""

from __future__ import annotations

import torch

from trainers.errors import ConfigurationError


def check_precision(precision: str, device: torch.device) -> None:
    """Refuses bf16 on a GPU that has it only in software, where it is slower than fp32.

    Args:
        precision: as `TorchTrainer` has it.
        device: that a worker trains on, the current one where it is a GPU.

    Raises:
        ConfigurationError: naming the GPU and the remedy.
    """
    if precision != "bf16" or device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False):
        return
    raise ConfigurationError(
        f"precision is 'bf16', and {torch.cuda.get_device_name(device)} computes no bf16 (NVIDIA's do from compute "
        "capability 8.0 on, such as an A100); give precision='fp32', or a ScalingConfig(accelerator_type=...) that does"
    )
