"""A GPT: the next token after each token of a text."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from trainers.pytorch import ModelPlan

BYTES = 256
"""Tokens that there are, where each is a byte."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """Sizes of a GPT.

    Args:
        width: numbers that stand for a token; `heads` divides it.
        layers: blocks, one behind the other.
        heads: of each block's attention.
    """

    width: int
    layers: int
    heads: int


SIZES = {
    "tiny": Size(width=32, layers=2, heads=2),
    "small": Size(width=128, layers=4, heads=4),
    "base": Size(width=384, layers=6, heads=6),
}
"""By name: of 46,000, 0.9 million and 10.9 million parameters, with 256 tokens and 128 of them a row."""


class Embedding(nn.Module):
    """Tokens as vectors, each with its position's added.

    Args:
        vocabulary: tokens that there are.
        context: tokens of the longest row.
        width: of a vector.
    """

    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Vectors (rows, tokens, width) of int64 tokens (rows, tokens)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        vectors: Tensor = self.tokens(tokens) + self.positions(places)
        return vectors


class Attention(nn.Module):
    """Causal attention of several heads (Vaswani et al., "Attention Is All You Need", 2017).

    A worker that holds some of the rows of the three projections has as many heads as these rows make.

    Args:
        width: of a vector.
        heads: that share it.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.query, self.value = nn.Linear(width, width), nn.Linear(width, width)
        # A bias would add the same to all scores of a query, which softmax takes out again.
        self.key = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width)
        self._head_width = width // heads

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors of the same shape, (rows, tokens, width)."""
        rows, length, _ = vectors.shape
        query, key, value = (
            of(vectors).view(rows, length, -1, self._head_width).transpose(1, 2)
            for of in (self.query, self.key, self.value)
        )
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        mixed: Tensor = self.out(seen.transpose(1, 2).reshape(rows, length, -1))
        return mixed


class Block(nn.Module):
    """A layer: attention and two linear maps, each behind a norm and beside what goes past it.

    Args:
        width: of a vector.
        heads: of the attention.
        dropout: part of what each adds that is dropped in training.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.before_attention, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.before_up, self.up, self.down = (
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors of the same shape, (rows, tokens, width)."""
        vectors = vectors + self.dropout(self.attention(self.before_attention(vectors)))
        mapped: Tensor = vectors + self.dropout(self.down(F.gelu(self.up(self.before_up(vectors)))))
        return mapped


class GPT(nn.Module):
    """A decoder as GPT-2 has it (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019).

    Its forward pass is the composition of `embedding`, `blocks` and `head`, so that it can be cut into stages. Weights
    begin as GPT-2's: normal with a deviation of 0.02, that of maps onto what goes past blocks divided by the square
    root of twice the layers.

    Args:
        size: its sizes.
        context: tokens of the longest row.
        vocabulary: tokens that there are.
        dropout: see `Block`.
    """

    def __init__(self, size: Size, *, context: int, vocabulary: int = BYTES, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = Embedding(vocabulary, context, size.width)
        self.blocks = nn.ModuleList(Block(size.width, size.heads, dropout) for _ in range(size.layers))
        self.head = nn.Sequential(nn.LayerNorm(size.width), nn.Linear(size.width, vocabulary, bias=False))
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                onto = name.endswith(("attention.out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * size.layers) if onto else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (rows, tokens, vocabulary) of the token behind each, of int64 tokens (rows, tokens)."""
        vectors = self.embedding(tokens)
        for block in self.blocks:
            vectors = block(vectors)
        logits: Tensor = self.head(vectors)
        return logits


def plan() -> ModelPlan:
    """How workers share a GPT: each block in shards of its own, heads and inner columns dealt out, or cut by blocks."""
    attention = {f"blocks.*.attention.{name}": "colwise" for name in ("query", "key", "value")}
    return ModelPlan(
        blocks=(Block,),
        tensor={
            **attention,
            "blocks.*.attention.out": "rowwise",
            "blocks.*.up": "colwise",
            "blocks.*.down": "rowwise",
        },
        sequence=("embedding", "blocks", "head"),
    )
