"""Observers of a running job: users' callbacks, terminal, Prometheus, logs, and the summary at its end."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.observers.callbacks import (
        Callback as Callback,
        Callbacks as Callbacks,
        JobEnd as JobEnd,
        JobStart as JobStart,
        TrialEnd as TrialEnd,
        TrialInfo as TrialInfo,
    )
    from hpo.observers.job_log import JobLog as JobLog
    from hpo.observers.lines import kept as kept
    from hpo.observers.live_view import console_for as console_for, watcher_for as watcher_for
    from hpo.observers.progress import Goal as Goal, PlainProgress as PlainProgress, Progress as Progress
    from hpo.observers.prometheus import Metrics as Metrics
    from hpo.observers.snippets import (
        TUNER as TUNER,
        as_attached as as_attached,
        as_python as as_python,
        as_yaml as as_yaml,
    )
    from hpo.observers.summary import (
        ended_text as ended_text,
        how_to_look as how_to_look,
        show_code as show_code,
        show_plan as show_plan,
        show_summary as show_summary,
        summarize as summarize,
    )
    from hpo.observers.training import (
        MODEL_CLASS as MODEL_CLASS,
        failure_of as failure_of,
        lines_for as lines_for,
        show_training as show_training,
        show_training_code as show_training_code,
        show_training_plan as show_training_plan,
        training_of as training_of,
    )

load_when_used(__name__)
