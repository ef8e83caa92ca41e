"""`ModelPlan`: what a layout has to know of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.distributed.tensor.parallel import ParallelStyle


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """How a model may be shared by workers, whichever of it a layout asks for.

    Args:
        blocks: classes of the modules whose parameters are gathered together where they are sharded, such as a
            transformer's layer; None: the members of the model's `ModuleList`s and `Sequential`s.
        tensor: by the name of a module, with `*` for any part of it, how its matrix is dealt out: "colwise" or
            "rowwise", or a style of `torch.distributed.tensor.parallel`.
        sequence: names of submodules whose composition is the model's forward pass, for pipelines. A `ModuleList` or
            `Sequential` stands for its members; a model that is a `Sequential` needs none.
        cuts: where stages begin behind the first, as places in the sequence, such as (3, 6) for three stages. Empty:
            balanced, by time where there is an `example`, else by parameters.
        example: a batch of the model's inputs, to measure by.
        recompute: activations of blocks are computed again in the backward pass, and not kept (Chen et al., "Training
            Deep Nets with Sublinear Memory Cost", 2016).
    """

    blocks: Sequence[type[nn.Module]] | None = None
    tensor: Mapping[str, str | ParallelStyle] = field(default_factory=dict)
    sequence: Sequence[str] = ()
    cuts: Sequence[int] = ()
    example: Tensor | None = None
    recompute: bool = False
