"""A job of the record in the words of SageMaker's API."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.sagemaker.added import Added as Added, add_trial as add_trial
    from hpo.sagemaker.analytics import (
        HyperparameterTuningJobAnalytics as HyperparameterTuningJobAnalytics,
        tuned_trials as tuned_trials,
    )
    from hpo.sagemaker.description import (
        counters as counters,
        describe as describe,
        describe_act as describe_act,
        describe_trial as describe_trial,
        training_job_statuses as training_job_statuses,
    )
    from hpo.sagemaker.having_model import HasModel as HasModel, delete_endpoint as delete_endpoint
    from hpo.sagemaker.registered import (
        register_trial as register_trial,
        register_where_asked as register_where_asked,
    )
    from hpo.sagemaker.snapshot import (
        MALFORMED as MALFORMED,
        Overview as Overview,
        Snapshot as Snapshot,
        overviews as overviews,
        readable_overviews as readable_overviews,
    )
    from hpo.sagemaker.stopped import StoppedTrial as StoppedTrial, stop_trial as stop_trial
    from hpo.sagemaker.training_description import (
        describe_any as describe_any,
        describe_training as describe_training,
        printed_metric as printed_metric,
        read_training as read_training,
    )
    from hpo.sagemaker.tuned_job import TunedJob as TunedJob

load_when_used(__name__)
