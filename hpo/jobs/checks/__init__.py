"""Checks of a job before anything starts: its arguments, and whether they fit its trainer."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.jobs.checks.arguments import (
        check_amount as check_amount,
        check_arguments as check_arguments,
        check_cost as check_cost,
        check_job_name as check_job_name,
        check_limits as check_limits,
        check_name_free as check_name_free,
        check_no_others as check_no_others,
        check_not_there_yet as check_not_there_yet,
        check_objective_name as check_objective_name,
        check_own_arguments as check_own_arguments,
        trial_name as trial_name,
    )
    from hpo.jobs.checks.trainer_fit import (
        TakesValues as TakesValues,
        check_objective as check_objective,
        check_trainer_ranges as check_trainer_ranges,
        direction_warnings as direction_warnings,
        gang_sizes as gang_sizes,
        inert_lengths as inert_lengths,
        longest as longest,
        pause_warnings as pause_warnings,
    )

load_when_used(__name__)
