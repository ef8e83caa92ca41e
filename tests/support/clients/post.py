"""The AWS post's steps with the unmodified SDK: tune XGBoost with Hyperband, wait, describe, and read the analytics.

`python post.py BUCKET JOB` with AWS_ENDPOINT_URL_SAGEMAKER and AWS_ENDPOINT_URL_S3 set; prints JSON.
"""

from __future__ import annotations

import json
import sys

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

bucket, name = sys.argv[1:]
session = sagemaker.Session(boto3.Session(region_name="us-east-1"), default_bucket=bucket)
estimator = Estimator(
    image_uri=sagemaker.image_uris.retrieve("xgboost", "us-east-1", "1.7-1"),
    role="arn:aws:iam::111122223333:role/anybody",
    instance_count=2,
    instance_type="ml.m5.xlarge",
    output_path=f"s3://{bucket}/models",
    sagemaker_session=session,
    hyperparameters={"objective": "binary:logistic", "eval_metric": "auc"},
)
tuner = HyperparameterTuner(
    estimator,
    "validation:auc",
    {"eta": ContinuousParameter(0.01, 1, scaling_type="Logarithmic"), "max_depth": IntegerParameter(1, 6)},
    strategy="Hyperband",
    strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=9, min_resource=1)),
    max_jobs=9,
    max_parallel_jobs=2,
    random_seed=7,
    base_tuning_job_name="post",
)
inputs = {
    channel: TrainingInput(f"s3://{bucket}/bank/{channel}", content_type="text/csv")
    for channel in ("train", "validation")
}
tuner.fit(inputs, job_name=name, wait=False)
tuner.wait()
described = tuner.describe()
again = HyperparameterTuner.attach(name, sagemaker_session=session)
frame = again.analytics().dataframe()
best = tuner.best_training_job()
curve = TrainingJobAnalytics(best, metric_names=["validation:auc"], sagemaker_session=session).dataframe()
training = session.describe_training_job(best)
sys.stdout.write(
    "\n"
    + json.dumps(
        {
            "status": described["HyperParameterTuningJobStatus"],
            "trials": len(frame),
            "best": best,
            "value": described["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"],
            "largest": float(frame["FinalObjectiveValue"].max()),
            "curve": curve["value"].tolist(),
            "artifact": training["ModelArtifacts"]["S3ModelArtifacts"],
            "workers": training["ResourceConfig"]["InstanceCount"],
        }
    )
    + "\n"
)
