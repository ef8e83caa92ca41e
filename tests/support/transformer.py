"""A small GPT: embeddings, blocks and a head, in float64, with numbers that depend on its seed alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY, LENGTH, WIDTH, HEADS = 13, 6, 16, 4


class Embed(nn.Module):
    """Tokens and their positions."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))


class Block(nn.Module):
    """Attention to earlier tokens, and a perceptron, each beside a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries, self.values, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        # A bias of keys has a gradient of zero but for rounding, which Adam makes as large as any.
        self.keys = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm_attention(x)
        parts = [
            project(normed).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
            for project in (self.queries, self.keys, self.values)
        ]
        mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm_mlp(x))))


class Head(nn.Module):
    """Scores of the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.scores = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(self.norm(x))


class Transformer(nn.Module):
    """Made of so many blocks."""

    def __init__(self, blocks: int = 4, seed: int = 3) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.embed = Embed()
            self.blocks = nn.ModuleList(Block() for _ in range(blocks))
            self.head = Head()
        self.double()

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


SEQUENCE = ("embed", "blocks", "head")
"""Of the transformer, for pipelines."""


def text(rows: int, seed: int = 5) -> tuple[Tensor, Tensor]:
    """Tokens, and those that come next: int64 (rows, LENGTH) each."""
    drawn = torch.randint(VOCABULARY, (rows, LENGTH + 1), generator=torch.Generator().manual_seed(seed))
    return drawn[:, :-1], drawn[:, 1:]


def next_token_loss(scores: Tensor, following: Tensor) -> Tensor:
    """The mean over rows and places."""
    return functional.cross_entropy(scores.reshape(-1, VOCABULARY), following.reshape(-1))
