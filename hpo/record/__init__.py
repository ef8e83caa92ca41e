"""The record of jobs in SQL."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.record.acts import (
        ACTS_AS as ACTS_AS,
        Actor as Actor,
        acting as acting,
        actor as actor,
        stops_in as stops_in,
        user as user,
    )
    from hpo.record.database import (
        explained as explained,
        is_away as is_away,
        open_engine as open_engine,
        shown as shown,
    )
    from hpo.record.job_view import (
        EARLIER_BEST as EARLIER_BEST,
        KIND as KIND,
        TRAINING as TRAINING,
        UNTUNED as UNTUNED,
        JobView as JobView,
        as_earlier_best as as_earlier_best,
        best_of_jobs as best_of_jobs,
        best_trial as best_trial,
        is_training as is_training,
        means as means,
        objective as objective,
        overall_best as overall_best,
        repeats_of as repeats_of,
        result_of as result_of,
        run_name as run_name,
        runtime as runtime,
        split as split,
        status_and_reason as status_and_reason,
        training_job_name as training_job_name,
        untuned_counts as untuned_counts,
        when as when,
    )
    from hpo.record.lease import (
        holder_of as holder_of,
        is_dead as is_dead,
        is_held as is_held,
        refusal as refusal,
        this_process as this_process,
    )
    from hpo.record.maintenance import check as check, upgrade as upgrade
    from hpo.record.reading import (
        Changes as Changes,
        Key as Key,
        Mark as Mark,
        TrialQuery as TrialQuery,
        Watch as Watch,
    )
    from hpo.record.store import JobWriter as JobWriter, LineRow as LineRow, ReportRow as ReportRow, Store as Store
    from hpo.record.surroundings import environment as environment
    from hpo.record.tables import (
        HEARD_BEFORE as HEARD_BEFORE,
        LOST_AFTER as LOST_AFTER,
        MAX_TRIAL_RUNTIME as MAX_TRIAL_RUNTIME,
        MAX_TRIAL_WAIT as MAX_TRIAL_WAIT,
        POINT as POINT,
        ActKind as ActKind,
        ActRow as ActRow,
        AdditionRow as AdditionRow,
        JobRow as JobRow,
        LedgerKind as LedgerKind,
        LedgerRow as LedgerRow,
        TrialRow as TrialRow,
        TrialStatus as TrialStatus,
        encode as encode,
    )
    from hpo.record.tags import tags_from as tags_from, tags_of as tags_of
    from hpo.record.totals import State as State, Totals as Totals
    from hpo.record.writer import LONGEST_WAIT as LONGEST_WAIT

load_when_used(__name__)
