"""The modules of a model that a plan names: its blocks, and its matrices that are dealt out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainers.checking import did_you_mean
from trainers.errors import TrialError
from trainers.pytorch.plan import ModelPlan

if TYPE_CHECKING:
    from torch import nn
    from torch.distributed.tensor.parallel import ParallelStyle


def blocks_of(model: nn.Module, plan: ModelPlan) -> list[nn.Module]:
    """The modules of a model whose parameters are gathered together, none of them within another.

    Raises:
        TrialError: the plan names classes, and the model has none of them.
    """
    found: list[nn.Module] = []

    def look(module: nn.Module) -> None:
        for child in module.children():
            member = _is_member(child, module) if plan.blocks is None else isinstance(child, tuple(plan.blocks))
            if member and next(child.parameters(), None) is not None:
                found.append(child)
            else:
                look(child)

    look(model)
    if plan.blocks is not None and not found:
        names = ", ".join(block.__name__ for block in plan.blocks)
        raise TrialError(f"ModelPlan(blocks=...): {type(model).__name__} has no module of {names}; name its layers")
    return found


def _is_member(module: nn.Module, parent: nn.Module) -> bool:
    """Whether a module is a layer of a list; what stands in a `Sequential` may be a list, or have one, itself."""
    from torch import nn

    if isinstance(parent, nn.ModuleList):
        return not isinstance(module, nn.ModuleList)
    if not isinstance(parent, nn.Sequential) or isinstance(module, nn.ModuleList | nn.Sequential):
        return False
    return not any(isinstance(within, nn.ModuleList) for within in module.modules())


def styles_of(model: nn.Module, plan: ModelPlan, workers: int) -> dict[str, ParallelStyle]:
    """How each module that a plan names is dealt out over so many workers, by its name in the model.

    Raises:
        TrialError: a name matches nothing, or a matrix cannot be dealt out.
    """
    from torch import nn
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    if not plan.tensor:
        raise TrialError(
            f"a layout with tensor={workers} has to know how {type(model).__name__}'s matrices are dealt out: "
            "context.prepare_model(model, ModelPlan(tensor={'blocks.*.up': 'colwise', 'blocks.*.down': 'rowwise'}))"
        )
    words: dict[str, type[ParallelStyle]] = {"colwise": ColwiseParallel, "rowwise": RowwiseParallel}
    modules = {name: module for name, module in model.named_modules() if name}
    styles: dict[str, ParallelStyle] = {}
    for pattern, word in plan.tensor.items():
        names = [name for name in modules if _matches(pattern, name)]
        if not names:
            raise TrialError(
                f"ModelPlan(tensor=...): {pattern!r} matches no module of {type(model).__name__}"
                f"{did_you_mean(pattern, modules)}"
            )
        for name in names:
            module = modules[name]
            if not isinstance(word, str):
                styles[name] = word
                continue
            if word not in words or not isinstance(module, nn.Linear | nn.Embedding):
                raise TrialError(
                    f"ModelPlan(tensor=...): {name!r} is a {type(module).__name__} and is to be dealt out as {word!r}; "
                    f"give {' or '.join(words)} for a Linear or an Embedding, or a ParallelStyle"
                )
            _check_divides(name, module, word, workers)
            styles[name] = words[word]()
    return styles


def _matches(pattern: str, name: str) -> bool:
    """Whether a name is of a pattern, part by part."""
    parts, wanted = name.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(want in ("*", part) for part, want in zip(parts, wanted, strict=True))


def _check_divides(name: str, module: nn.Module, word: str, workers: int) -> None:
    """Refuses a matrix whose rows, or columns, are no multiple of the workers: heads would be cut through."""
    rows, columns = module.weight.shape  # type: ignore[misc]
    # An Embedding's matrix lies the other way round than a Linear's.
    across = (rows, columns)[(word == "rowwise") ^ (type(module).__name__ == "Embedding")]
    if int(across) % workers:
        raise TrialError(
            f"ModelPlan(tensor=...): {name!r} has {int(across)} {'columns' if word == 'colwise' else 'rows'} to deal "
            f"out over tensor={workers} workers; give a model whose width is a multiple of {workers}"
        )
