"""Folders of files as they are, which are channels of programs: whole on every node, or dealt out to the workers."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.channels.folder.fetching import FETCH_SECONDS as FETCH_SECONDS
    from trainers.channels.folder.given import Folder as Folder
    from trainers.channels.folder.laid_out import PlacedFolder as PlacedFolder
    from trainers.channels.folder.opened import OpenedFolder as OpenedFolder

load_when_used(__name__)
