"""A PyTorch script with the unmodified SDK 2: trained once on two workers, then tuned.

`python script.py BUCKET JOB` with the endpoints in the environment; prints JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import boto3
import sagemaker
from sagemaker.pytorch import PyTorch
from sagemaker.tuner import ContinuousParameter, HyperparameterTuner

bucket, name = sys.argv[1:]
session = sagemaker.Session(boto3.Session(region_name="us-east-1"), default_bucket=bucket)
printed = [{"Name": "train:loss", "Regex": r"epoch=(?P<step>\d+); train:loss=([0-9.]+);"}]


def estimator(**hyperparameters: float) -> PyTorch:
    return PyTorch(
        "train.py",
        source_dir=str(Path(__file__).parent / "programs"),
        framework_version="2.1.0",
        py_version="py310",
        role="arn:aws:iam::111122223333:role/anybody",
        instance_count=2,
        instance_type="ml.g4dn.xlarge",
        distribution={"torch_distributed": {"enabled": True}},
        output_path=f"s3://{bucket}/models",
        hyperparameters={"epochs": 4, **hyperparameters},
        metric_definitions=printed,
        sagemaker_session=session,
    )


once = estimator(lr=0.1)
once.fit({"train": f"s3://{bucket}/bank/train"}, job_name=f"{name}-once", logs=False)
tuner = HyperparameterTuner(
    estimator(),
    "train:loss",
    {"lr": ContinuousParameter(0.01, 1)},
    metric_definitions=printed,
    objective_type="Minimize",
    strategy="Random",
    max_jobs=3,
    random_seed=3,
)
tuner.fit({"train": f"s3://{bucket}/bank/train"}, job_name=name, wait=True)
trials = tuner.analytics().dataframe()
described = session.describe_training_job(f"{name}-once")
attached = tuner.best_estimator()
sys.stdout.write(
    "\n"
    + json.dumps(
        {
            "once": described["TrainingJobStatus"],
            "loss": described["FinalMetricDataList"][0]["Value"],
            "tuned": tuner.describe()["HyperParameterTuningJobStatus"],
            "values": trials["FinalObjectiveValue"].tolist(),
            "curve": once.training_job_analytics.dataframe()["metric_name"].tolist(),
            "attached": [attached.entry_point, attached.hyperparameters()["epochs"], attached.hyperparameters()["lr"]],
            "workers": described["ResourceConfig"]["InstanceCount"],
        }
    )
    + "\n"
)
