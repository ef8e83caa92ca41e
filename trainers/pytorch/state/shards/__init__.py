"""Checkpoints in shards: each worker writes its part of the state, and reads what it needs, in whatever layout."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.state.shards.folder import INDEX as INDEX, Folder as Folder
    from trainers.pytorch.state.shards.names import cut as cut, named as named
    from trainers.pytorch.state.shards.owners import Owners as Owners
    from trainers.pytorch.state.shards.placing import hook as hook, leave_out as leave_out, place as place
    from trainers.pytorch.state.shards.saving import Staged as Staged, needed as needed, stage as stage
    from trainers.pytorch.state.shards.stored import (
        Impatient as Impatient,
        Reader as Reader,
        Stored as Stored,
        opened as opened,
        whole as whole,
    )
    from trainers.pytorch.state.shards.tree import is_sharded as is_sharded

load_when_used(__name__)
