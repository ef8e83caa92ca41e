"""What goes wrong where workers compute together: every rank says the same, and nobody waits for ever."""

from __future__ import annotations

from functools import partial

import numpy as np
from ray.train import ScalingConfig

from tests.support.networks import data, train_exactly
from tests.support.process_gang import serve_alone
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, TorchTrainer
from trainers.channels import Channel
from trainers.errors import DataError


def test_values_that_a_network_cannot_take_are_refused(tmp_path):
    features, labels = data()
    features[3, 2] = np.nan
    trainer = TorchTrainer(train_exactly, scaling=ScalingConfig(num_workers=0))
    with refuses(DataError, field=("channel", "train"), value=1, remedy="NaN"):
        serve_alone(trainer.program({"train": Channel.of((features, labels), name="train").place(0)}))


def test_what_cannot_be_right_is_refused_where_it_is_given():
    def made(arguments):
        given = {"train_loop_per_worker": train_exactly, "scaling": ScalingConfig(num_workers=2), **arguments}
        return TorchTrainer(given.pop("train_loop_per_worker"), **given)

    here, on_gpu = ScalingConfig(num_workers=0), ScalingConfig(num_workers=0, use_gpu=True)
    cases = [
        ({"train_loop_per_worker": 3}, ("train_loop_per_worker", "3", "function", "module:name")),
        ({"train_loop_per_worker": "nowhere"}, ("train_loop_per_worker", "nowhere", "function", "module:name")),
        ({"train_loop_per_worker": "nowhere:train"}, ("train_loop_per_worker", "nowhere:train", "function", "module")),
        ({"train_loop_per_worker": "math:pi"}, ("train_loop_per_worker", "math:pi", "float", "function")),
        ({"precision": "fp61"}, ("precision", "fp61", "fp32", "bf16", "fp16", "bf16-master")),
        ({"compile": 1}, ("compile", "1", "True", "False")),
        ({"metrics": "validation:accuracy"}, ("metrics", "'validation:accuracy'", "['validation:accuracy']")),
        ({"metrics": ["accuracy"]}, ("metrics", "'accuracy'", "validation:accuracy")),
        ({"report_timeout_s": 0}, ("report_timeout_s", "0")),
        ({"hyperparameters": {"epochs": 1.5}}, ("epochs", "1.5")),
        ({"hyperparameters": {"num_workers": 0}}, ("num_workers", "0", "1")),
        ({"hyperparameters": {"global_batch_size": 7}}, ("global_batch_size", "7", "2", "workers")),
        ({"hyperparameters": {"global_batch_size": 9, "num_workers": 4}}, ("global_batch_size", "9", "4", "workers")),
        ({"scaling": here, "hyperparameters": {"num_workers": 4}}, ("num_workers", "4", "num_workers=0", "1")),
        ({"scaling": on_gpu}, ("use_gpu=True", "GPU", "use_gpu=False")),
    ]
    refuses_each([(partial(made, arguments), names) for arguments, names in cases], ConfigurationError)
