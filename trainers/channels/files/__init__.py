"""Rows in files: found by their paths, dealt out to ranks, and read a block at a time."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.channels.files.files import Files as Files
    from trainers.channels.files.filesystems import (
        check_once as check_once,
        filesystem_of as filesystem_of,
        nothing_found as nothing_found,
    )
    from trainers.channels.files.kinds import LIBSVM as LIBSVM
    from trainers.channels.files.libsvm import LibsvmFiles as LibsvmFiles, agreed as agreed
    from trainers.channels.files.opening import (
        check_delimiter as check_delimiter,
        is_heading as is_heading,
        open_files as open_files,
    )

load_when_used(__name__)
