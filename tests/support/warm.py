"""What takes long to import, for a process that others are forked from; torch's compiler comes with an optimizer."""

import ray.train  # noqa: F401
import torch
import xgboost  # noqa: F401

torch.optim.SGD([torch.zeros(1)])
