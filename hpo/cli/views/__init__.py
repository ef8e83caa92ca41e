"""Tables of jobs and trials that fit the terminal."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.cli.views.data import report_json as report_json, report_parts as report_parts
    from hpo.cli.views.jobs import jobs_table as jobs_table
    from hpo.cli.views.page import code_of as code_of, job_page as job_page
    from hpo.cli.views.trial_check import trial_check_lines as trial_check_lines
    from hpo.cli.views.trials import (
        act_lines as act_lines,
        added_lines as added_lines,
        failures as failures,
        stopped_lines as stopped_lines,
        trials_table as trials_table,
        waiting_lines as waiting_lines,
    )
    from hpo.cli.views.words import ago as ago, value_text as value_text

load_when_used(__name__)
