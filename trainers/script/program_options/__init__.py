"""Options of a program as its source declares them, read without running it."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.script.program_options.config_options import config_folders as config_folders
    from trainers.script.program_options.declared import of_source as of_source, options_of as options_of
    from trainers.script.program_options.guesses import (
        folder_of as folder_of,
        launcher_of as launcher_of,
        length_of as length_of,
    )
    from trainers.script.program_options.help_text import options_in_help as options_in_help
    from trainers.script.program_options.option import (
        ProgramOption as ProgramOption,
        ProgramOptions as ProgramOptions,
    )
    from trainers.script.program_options.printed import (
        PrintedMetric as PrintedMetric,
        printed_metrics as printed_metrics,
    )
    from trainers.script.program_options.source import Source as Source

load_when_used(__name__)
