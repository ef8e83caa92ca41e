"""What an optimizer says of its hooks, in attributes that PyTorch may change."""

import torch

from trainers.parameter_server.hooks import has_step_hooks


def test_hooks_are_seen_as_long_as_they_are_there():
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    for register in (optimizer.register_step_pre_hook, optimizer.register_step_post_hook):
        assert not has_step_hooks(optimizer)
        handle = register(lambda *_: None)
        assert has_step_hooks(optimizer)
        handle.remove()
    assert not has_step_hooks(optimizer)
