"""Programs of the user's: a trial is a program that a launcher starts on the workers of a gang."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.script.arguments import (
        LISTS as LISTS,
        STYLES as STYLES,
        Arguments as Arguments,
        check_names as check_names,
    )
    from trainers.script.folders import files_in as files_in, gzipped_tar as gzipped_tar
    from trainers.script.lengths import LENGTHS as LENGTHS, program_length as program_length
    from trainers.script.output_log import (
        TURN as TURN,
        logs_folder as logs_folder,
        remove_logs as remove_logs,
        trial_log as trial_log,
    )
    from trainers.script.placeholders import check_placeholders as check_placeholders, doubled as doubled
    from trainers.script.program_options import (
        PrintedMetric as PrintedMetric,
        ProgramOption as ProgramOption,
        ProgramOptions as ProgramOptions,
        Source as Source,
        config_folders as config_folders,
        folder_of as folder_of,
        launcher_of as launcher_of,
        length_of as length_of,
        of_source as of_source,
        options_in_help as options_in_help,
        options_of as options_of,
        printed_metrics as printed_metrics,
    )
    from trainers.script.steps import StepCounter as StepCounter
    from trainers.script.trainer import ScriptTrainer as ScriptTrainer

load_when_used(__name__)
