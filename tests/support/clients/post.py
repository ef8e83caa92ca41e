"""The AWS post's notebook with the unmodified SDK: train XGBoost on one instance and on several, tune it, and analyse.

`python post.py BUCKET JOB` with AWS_ENDPOINT_URL_SAGEMAKER and others set; prints JSON. What a notebook finds in its
environment is there: a file that names its role, which is `RESOURCE_METADATA` here, since the service's own place is
root's, and a default bucket in the SDK's file of defaults.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import boto3
import sagemaker
from sagemaker.analytics import TrainingJobAnalytics
from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput
from sagemaker.tuner import (
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)

sagemaker.session.NOTEBOOK_METADATA_FILE = os.environ["RESOURCE_METADATA"]
name = sys.argv[2]
role = sagemaker.get_execution_role()
bucket = sagemaker.Session().default_bucket()
assert bucket == sys.argv[1]


def estimator(instances: int = 1) -> Estimator:
    made = Estimator(
        sagemaker.image_uris.retrieve("xgboost", boto3.Session().region_name, "latest"),
        role,
        instance_count=instances,
        instance_type="ml.m5.2xlarge",
        output_path=f"s3://{bucket}/models",
        sagemaker_session=sagemaker.Session(),
    )
    made.set_hyperparameters(
        eval_metric="auc", objective="binary:logistic", num_round=6, rate_drop=0.0, tree_method="exact", eta=0.3
    )
    return made


inputs = {
    "train": TrainingInput(distribution="ShardedByS3Key", s3_data=f"s3://{bucket}/bank/train", content_type="csv"),
    "validation": TrainingInput(s3_data=f"s3://{bucket}/bank/validation/", content_type="csv"),
}


def columns(frame: Any) -> dict[str, list[Any]]:
    return {str(column): frame[column].tolist() for column in frame}


alone, several = estimator(), estimator(2)
alone.fit(inputs, job_name=f"{name}-1", wait=True)
one = alone.training_job_analytics.dataframe(force_refresh=False)
several.fit(inputs, job_name=f"{name}-2", wait=True)
two = several.training_job_analytics.dataframe(force_refresh=True)
tuner = HyperparameterTuner(
    several,
    "validation:auc",
    {
        "num_round": IntegerParameter(6, 12),
        "eta": ContinuousParameter(0, 1),
        "min_child_weight": ContinuousParameter(1, 10),
        "colsample_bylevel": ContinuousParameter(0, 1),
    },
    max_jobs=9,
    max_parallel_jobs=2,
    strategy="Hyperband",
    early_stopping_type="Off",
    strategy_config=StrategyConfig(hyperband_strategy_config=HyperbandStrategyConfig(max_resource=9, min_resource=1)),
    base_tuning_job_name=name,
)
tuner.fit(inputs, include_cls_metadata=False, wait=True)
tuning = tuner.latest_tuning_job.job_name
status = boto3.client("sagemaker").describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=tuning)
again = HyperparameterTuner.attach(tuning_job_name=tuning)
value = again.describe()["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]
trials = sagemaker.HyperparameterTuningJobAnalytics(tuning).dataframe()
best = again.best_training_job()
attached = again.best_estimator()
training = sagemaker.Session().describe_training_job(best)
sys.stdout.write(
    "\n"
    + json.dumps(
        {
            "role": role,
            "tuning": tuning,
            "status": status["HyperParameterTuningJobStatus"],
            "trials": len(trials),
            "largest": float(
                trials.sort_values(by=["FinalObjectiveValue"], ascending=False)["FinalObjectiveValue"].iloc[0]
            ),
            "seconds": float(trials["TrainingElapsedTimeSeconds"].mean()),
            "value": value,
            "one": columns(one),
            "two": columns(two),
            "curve": columns(TrainingJobAnalytics(best).dataframe()),
            "artifact": training["ModelArtifacts"]["S3ModelArtifacts"],
            "model": attached.model_data,
            "hyperparameters": attached.hyperparameters(),
            "workers": training["ResourceConfig"]["InstanceCount"],
        }
    )
    + "\n"
)
