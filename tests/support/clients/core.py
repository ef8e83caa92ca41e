"""The resources of SDK 3: a training is created, waited for, found in the list and read again.

`python core.py BUCKET JOB` with the endpoints in the environment; prints JSON.
"""

from __future__ import annotations

import json
import sys

from sagemaker.core.resources import TrainingJob
from sagemaker.core.shapes import (
    AlgorithmSpecification,
    Channel,
    DataSource,
    OutputDataConfig,
    ResourceConfig,
    S3DataSource,
    StoppingCondition,
)

bucket, name = sys.argv[1:]
channels = [
    Channel(
        channel_name=channel,
        content_type="text/csv",
        data_source=DataSource(
            s3_data_source=S3DataSource(s3_data_type="S3Prefix", s3_uri=f"s3://{bucket}/bank/{channel}")
        ),
    )
    for channel in ("train", "validation")
]
job = TrainingJob.create(
    training_job_name=name,
    algorithm_specification=AlgorithmSpecification(
        training_image="683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1",
        training_input_mode="File",
    ),
    role_arn="arn:aws:iam::111122223333:role/anybody",
    input_data_config=channels,
    output_data_config=OutputDataConfig(s3_output_path=f"s3://{bucket}/models"),
    resource_config=ResourceConfig(instance_type="ml.m5.large", instance_count=1, volume_size_in_gb=1),
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    hyper_parameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": "3"},
    region="us-east-1",
)
job.wait(poll=1, timeout=200)
again = TrainingJob.get(name, region="us-east-1")
listed = [each.training_job_name for each in TrainingJob.get_all(region="us-east-1")]
metrics = {each.metric_name: each.value for each in again.final_metric_data_list}
sys.stdout.write(
    "\n" + json.dumps({"status": again.training_job_status, "listed": name in listed, "metrics": metrics}) + "\n"
)
