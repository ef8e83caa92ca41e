"""Slow imports for a process that others are forked from; an optimizer imports torch's compiler."""

import ray.train  # noqa: F401
import torch
import xgboost  # noqa: F401

torch.optim.SGD([torch.zeros(1)])
