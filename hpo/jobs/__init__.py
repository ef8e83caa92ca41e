"""A tuning job's life: settings, run, driver and resume."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.jobs import launch as launch
    from hpo.jobs.begin import (
        FIRST_LINE as FIRST_LINE,
        NewJob as NewJob,
        check_job as check_job,
        earlier_of as earlier_of,
        forecast_of as forecast_of,
    )
    from hpo.jobs.build import (
        NAME_LENGTH as NAME_LENGTH,
        TuningJob as TuningJob,
        name_from as name_from,
        search_for as search_for,
    )
    from hpo.jobs.checks import (
        TakesValues as TakesValues,
        check_cost as check_cost,
        check_no_others as check_no_others,
        check_not_there_yet as check_not_there_yet,
        check_objective as check_objective,
        check_objective_name as check_objective_name,
        check_own_arguments as check_own_arguments,
        check_trainer_ranges as check_trainer_ranges,
        longest as longest,
        trial_name as trial_name,
    )
    from hpo.jobs.continuity import continuations as continuations
    from hpo.jobs.driver import (
        apart as apart,
        check_resumable as check_resumable,
        drive as drive,
        exit_code as exit_code,
        resume_apart as resume_apart,
    )
    from hpo.jobs.files import (
        ARCHIVES as ARCHIVES,
        Files as Files,
        archive_of as archive_of,
        check_over as check_over,
        dataset_channels as dataset_channels,
        dropped as dropped,
        left_text as left_text,
    )
    from hpo.jobs.launch import (
        ADDRESS_VARIABLES as ADDRESS_VARIABLES,
        RECORD as RECORD,
        JobsServer as JobsServer,
        check_no_password as check_no_password,
        check_pinned as check_pinned,
        end_abandoned as end_abandoned,
        ray_job as ray_job,
    )
    from hpo.jobs.named_code import (
        NamedCode as NamedCode,
        attached_code as attached_code,
        check_allowed as check_allowed,
        check_record as check_record,
        in_record as in_record,
        inputs_code as inputs_code,
        look_here_too as look_here_too,
    )
    from hpo.jobs.options import (
        OF_SEVERAL as OF_SEVERAL,
        Options as Options,
        declared as declared,
        with_options as with_options,
    )
    from hpo.jobs.raising import RAISED as RAISED, cannot_be_made as cannot_be_made, raises as raises
    from hpo.jobs.recorder import JobRecord as JobRecord
    from hpo.jobs.resuming import how_to_resume as how_to_resume
    from hpo.jobs.settings import SETTINGS as SETTINGS, JobSettings as JobSettings, by_kind as by_kind
    from hpo.jobs.sizing import sized as sized
    from hpo.jobs.stop_signals import Interrupts as Interrupts
    from hpo.jobs.trial_check import TrialCheck as TrialCheck, check_trial as check_trial

load_when_used(__name__)
