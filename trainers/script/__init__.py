"""Programs of the user's: a trial is a program that a launcher starts on the workers of a gang."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.script.lengths import LENGTHS as LENGTHS, program_length as program_length
    from trainers.script.output_log import logs_folder as logs_folder, trial_log as trial_log
    from trainers.script.trainer import ScriptTrainer as ScriptTrainer

load_when_used(__name__)
