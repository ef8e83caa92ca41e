"""Reading of the record while jobs run: marks that tell what has changed, and the changes alone."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.record.reading.curve import curves as curves
    from hpo.record.reading.mark import Mark as Mark, marks as marks
    from hpo.record.reading.row import rows as rows
    from hpo.record.reading.trial_pages import Key as Key, TrialQuery as TrialQuery, found_trials as found_trials
    from hpo.record.reading.watch import Changes as Changes, Watch as Watch

load_when_used(__name__)
