"""Pipelines: stages of a model on workers one behind the other, which micro-batches pass through."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.pipeline.distribution import Pipelined as Pipelined

load_when_used(__name__)
