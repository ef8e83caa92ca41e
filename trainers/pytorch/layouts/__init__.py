"""Layouts: how the workers of a gang share one model, by replicas, shards, tensors and stages."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.layouts.layout import LAYOUT as LAYOUT, Layout as Layout
    from trainers.pytorch.layouts.plan import ModelPlan as ModelPlan

load_when_used(__name__)
