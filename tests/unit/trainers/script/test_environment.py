"""Environment of a program: what SageMaker's programs read is there, and says the same."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from hypothesis import given, strategies as st

from trainers.script.arguments import arguments_of
from trainers.script.environment import Folders, environment_of, files_of
from trainers.script.launchers import Place

PLACE = Place(rank=1, world_size=2, hosts=("10.0.0.1", "10.0.0.2"), ports=((5000,), (5001,)), cpus=4, gpus=1)
FOLDERS = Folders.under("/opt/ml", "/code")
HYPERPARAMETERS = {"lr": 0.1, "batch-size": 32, "nesterov": True, "name": "adam", "none": None}


def environment(hyperparameters=None, channels=None) -> dict[str, str]:
    return environment_of(
        HYPERPARAMETERS if hyperparameters is None else hyperparameters,
        entry_point="train.py",
        channels={"train": "/data/t", "test": "/data/v"} if channels is None else channels,
        folders=FOLDERS,
        place=PLACE,
        job_name="job",
    )


def test_arguments_are_in_the_order_given():
    assert arguments_of({"lr": 0.1, "n": 3, "flag": False, "none": None, "layers": [1, 2], "opt": {"a": "b"}}) == [
        *("--lr", "0.1", "-n", "3", "--flag", "False", "--layers", "[1, 2]", "--opt", '{"a": "b"}')
    ]


def test_none_is_no_argument():
    assert arguments_of(HYPERPARAMETERS) == [
        *("--lr", "0.1", "--batch-size", "32", "--nesterov", "True", "--name", "adam")
    ]


@given(
    st.dictionaries(
        st.sampled_from(["lr", "batch-size", "x", "long_name"]),
        st.floats(allow_nan=False)
        | st.integers()
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
    )
)
def test_argparse_reads_every_value_back(hyperparameters):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, value in hyperparameters.items():
        parser.add_argument(f"-{name}" if len(name) == 1 else f"--{name}", dest=name, type=type(value))
    assert vars(parser.parse_args(arguments_of(hyperparameters))) == hyperparameters


def test_variables_have_sagemaker_s_names_and_values():
    found = environment()
    assert {name: found[name] for name in found if name.startswith("SM_HP_")} == {
        "SM_HP_LR": "0.1",
        "SM_HP_BATCH-SIZE": "32",
        "SM_HP_NESTEROV": "true",
        "SM_HP_NAME": "adam",
        "SM_HP_NONE": "",
    }
    assert json.loads(found["SM_HPS"]) == {"lr": 0.1, "batch-size": 32, "nesterov": True, "name": "adam", "none": None}
    assert json.loads(found["SM_USER_ARGS"]) == arguments_of(HYPERPARAMETERS)
    assert found["SM_CHANNELS"] == '["test","train"]'
    assert (found["SM_CHANNEL_TRAIN"], found["SM_CHANNEL_TEST"]) == ("/data/t", "/data/v")
    assert (found["SM_HOSTS"], found["SM_CURRENT_HOST"]) == ('["algo-1","algo-2"]', "algo-2")
    assert (found["SM_NUM_CPUS"], found["SM_NUM_GPUS"], found["SM_LOG_LEVEL"]) == ("4", "1", "20")
    assert (found["SM_MASTER_ADDR"], found["SM_MASTER_PORT"], found["SM_CURRENT_HOST_RANK"]) == (
        *("10.0.0.1", "5000", "1"),
    )
    assert (found["SM_USER_ENTRY_POINT"], found["SM_MODULE_NAME"], found["SM_MODULE_DIR"]) == (
        *("train.py", "train", "/code"),
    )
    assert found["SM_FRAMEWORK_PARAMS"] == "{}"
    assert found["WARMBAND_MACHINES"] == "10.0.0.1:5000,10.0.0.2:5001"


def test_folders_are_sagemaker_s():
    found = environment()
    assert {name: found[f"SM_{name}"] for name in ("MODEL_DIR", "OUTPUT_DIR", "OUTPUT_DATA_DIR", "INPUT_DIR")} == {
        "MODEL_DIR": "/opt/ml/model",
        "OUTPUT_DIR": "/opt/ml/output",
        "OUTPUT_DATA_DIR": "/opt/ml/output/data",
        "INPUT_DIR": "/opt/ml/input",
    }
    assert found["SM_INPUT_CONFIG_DIR"] == "/opt/ml/input/config"
    assert found["SM_CHECKPOINT_DIR"] == "/opt/ml/checkpoints"


def test_the_training_environment_says_the_same_as_the_variables():
    found = environment()
    training = json.loads(found["SM_TRAINING_ENV"])
    for name, value in training.items():
        if f"SM_{name.upper()}" in found:
            text = found[f"SM_{name.upper()}"]
            assert value == (text if isinstance(value, str) else json.loads(text)), name
    assert training["channel_input_dirs"] == {"train": "/data/t", "test": "/data/v"}
    assert (training["is_master"], training["job_name"], training["master_hostname"]) == (False, "job", "algo-1")


def test_files_are_sagemaker_s_and_one_with_types():
    files = {
        name: json.loads(text) for name, text in files_of(HYPERPARAMETERS, channels={"train": "x"}, place=PLACE).items()
    }
    assert files["hyperparameters.json"] == {
        "lr": "0.1",
        "batch-size": "32",
        "nesterov": "true",
        "name": "adam",
        "none": "null",
    }
    assert files["resourceconfig.json"]["current_host"] == "algo-2"
    assert files["resourceconfig.json"] == json.loads(environment()["SM_RESOURCE_CONFIG"])
    assert files["inputdataconfig.json"].keys() == {"train"}
    typed = Path(environment()["WARMBAND_HYPERPARAMETERS"])
    assert str(typed.parent) == FOLDERS.config
    assert files[typed.name] == {"lr": 0.1, "batch-size": 32, "nesterov": True, "name": "adam", "none": None}


def test_a_value_that_is_not_finite_is_read_back():
    assert math.isnan(json.loads(environment({"x": math.nan})["SM_HPS"])["x"])
    assert float(environment({"x": -math.inf})["SM_HP_X"].replace("Infinity", "inf")) == -math.inf
