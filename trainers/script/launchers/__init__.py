"""Launchers: what each worker of a gang starts for its part of a program."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.script.launchers.command_line import PLACES as PLACES, uses_trial as uses_trial
    from trainers.script.launchers.named import LAUNCHERS as LAUNCHERS
    from trainers.script.launchers.place import (
        PORTS as PORTS,
        RANK_WRAPPER as RANK_WRAPPER,
        LauncherOptions as LauncherOptions,
        Place as Place,
        Start as Start,
        common as common,
    )
    from trainers.script.launchers.starting import (
        check_launcher as check_launcher,
        mixes_ranks as mixes_ranks,
        start_of as start_of,
        wrapped as wrapped,
    )

load_when_used(__name__)
