"""`Precision`: types of numbers that a trial computes with, as trainers and hyperparameters name them; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    import torch

PRECISION = "precision"
"""The hyperparameter that goes before the trainer's."""

PRECISIONS = ("fp32", "bf16", "fp16", "bf16-master", "fp16-master")


@dataclass(frozen=True, slots=True)
class Precision:
    """A precision by its name.

    Parameters, optimizer state and checkpoints are as the model has them, float32 as a rule, in every precision; these
    parameters are the master copy (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.1). "bf16" and
    "fp16" compute in `torch.autocast`, which casts parameters as they are used, and have gradients in float32.
    "bf16-master" and "fp16-master" compute with a low copy of the parameters, and have gradients, and what AllReduce
    carries, in the low precision: half the bytes. Parameters of normalisation layers have no low copy.

    Args:
        name: one of `PRECISIONS`.

    Raises:
        ConfigurationError: there is no such precision.
    """

    name: str = "fp32"

    def __post_init__(self) -> None:
        if self.name not in PRECISIONS:
            raise ConfigurationError(
                f"precision is {self.name!r}; give one of {', '.join(PRECISIONS)}{did_you_mean(self.name, PRECISIONS)}"
            )

    def under(self, hyperparameters: Mapping[str, Any]) -> Self:
        """The hyperparameters' precision, or else this one.

        Raises:
            ConfigurationError: there is no such precision.
        """
        name = hyperparameters.get(PRECISION)
        return self if name is None else type(self)(name)

    @property
    def low(self) -> torch.dtype | None:
        """The type that matrices are multiplied in; None: that of the parameters."""
        import torch

        return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.name.removesuffix("-master"))

    @property
    def copies(self) -> bool:
        """Whether parameters have copies in the low precision."""
        return self.name.endswith("-master")

    @property
    def scales(self) -> bool:
        """Whether losses are scaled, so that small gradients are no zeros."""
        return self.name.startswith("fp16")

    def check(self, device: torch.device) -> None:
        """Refuses a precision that a device lacks.

        Raises:
            ConfigurationError: it does.
        """
        import torch

        if self.low is None:
            return
        lacks = not torch.amp.is_autocast_available(device.type)
        if device.type == "cuda" and self.low is torch.bfloat16:
            lacks = not torch.cuda.is_bf16_supported(including_emulation=False)
        if lacks:
            name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
            raise ConfigurationError(
                f"precision {self.name!r}: device {name!r} does not compute in it; give 'fp32', or a "
                "ScalingConfig(accelerator_type=...) that does (of NVIDIA's, bf16 takes compute capability 8.0)"
            )
