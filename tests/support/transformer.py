"""A small transformer in double precision, its plan, and a function that trains it alike under every layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from trainers import ModelPlan, TrainContext

TOKENS, LENGTH, WIDTH, HEADS, BLOCKS = 11, 6, 8, 4, 4


class Embedding(nn.Module):
    """Tokens (rows, length) as vectors (rows, length, width)."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))

    def forward(self, tokens: Tensor) -> Tensor:
        embedded: Tensor = self.tokens(tokens) + self.places
        return embedded


class Block(nn.Module):
    """Attention and a perceptron, each behind a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.value = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        # A bias would have no gradient but rounding, of which Adam makes steps of full length.
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, _ = x.shape
        normal = self.before(x)
        # As many heads as this worker has of the matrices.
        heads = [
            part(normal).view(rows, length, -1, WIDTH // HEADS).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        ]
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, -1))
        grown: Tensor = x + self.down(functional.gelu(self.up(self.between(x))))
        return grown


class Transformer(nn.Module):
    """Scores (rows, length, tokens) of the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = Embedding()
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.head(x)
        return scores


PLAN = ModelPlan(
    blocks=(Block,),
    tensor={
        "blocks.*.query": "colwise",
        "blocks.*.key": "colwise",
        "blocks.*.value": "colwise",
        "blocks.*.out": "rowwise",
        "blocks.*.up": "colwise",
        "blocks.*.down": "rowwise",
    },
    sequence=("embedding", "blocks", "head"),
)


def text(rows: int) -> Tensor:
    """Rows of tokens (rows, length + 1), each of which follows from the two before it."""
    tokens = torch.randint(TOKENS, (rows, LENGTH + 1), generator=torch.Generator().manual_seed(rows))
    for place in range(2, LENGTH + 1):
        tokens[:, place] = (tokens[:, place - 1] + 3 * tokens[:, place - 2]) % TOKENS
    return tokens


def loss_of(model: nn.Module, tokens: Tensor) -> Tensor:
    """The mean cross entropy of the next token."""
    return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def whole(tensor: Tensor) -> Tensor:
    """All of it, on every worker."""
    full: Any = getattr(tensor, "full_tensor", None)
    return (full() if full else tensor).detach()


def train_text(context: TrainContext, dtype: torch.dtype = torch.float64) -> None:
    """AdamW with clipping on rows that all workers have; losses are reported, and parameters left in a file.

    Hyperparameters: `rows`, `leave` (a folder), `clip`, `global_batch_size`.
    """
    words = context.hyperparameters
    torch.manual_seed(5)
    model = context.prepare_model(Transformer().to(dtype), PLAN)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.1)
    assert context.batch is not None
    rows = TensorDataset(text(words.get("rows", 27)))
    batches = context.prepare_data(DataLoader(rows, batch_size=context.batch.per_worker_batch_size))
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    for _ in context.epochs():
        model.train()
        last = torch.zeros((), dtype=dtype)
        for (tokens,) in batches:
            loss = loss_of(model, tokens)
            context.step(loss, optimizer, max_norm=words.get("clip"))
            last = loss.detach()
        model.eval()
        total = torch.zeros((), dtype=dtype)
        with torch.no_grad():
            for (tokens,) in batches:
                total += loss_of(model, tokens) * len(tokens)
        if "leave" in words:
            values = {name: whole(parameter) for name, parameter in model.named_parameters()}
            # Each worker's, of which a stage of a pipeline has some.
            torch.save(values, Path(words["leave"]) / f"{torch.distributed.get_rank() if context.mesh else 0}.pt")
        context.report(
            {"train:loss": float(context.sum(total)) / len(rows), "train:last": float(last)},
            checkpoint={"model": {name: whole(value) for name, value in model.state_dict().items()}},
        )
