"""Placeholders in hyperparameters and launchers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.refusals import refuses_each
from trainers.errors import ConfigurationError
from trainers.script.launchers import LauncherOptions, Place, check_launcher, start_of
from trainers.script.placeholders import Fillings, check_placeholders

FOLDERS = {"checkpoints": "/c", "model": "/m", "output": "/o"}


def filled(**values: object) -> dict[str, object]:
    return Fillings(folders=FOLDERS, hyperparameters=values, channels={"train": "/d"}).filled()


def test_folders_channels_and_other_hyperparameters_stand_in_values() -> None:
    given = filled(
        lr=0.1,
        out="{output}/lr-{hp:lr}",
        where=["{data:train}", {"x": "{model}"}],
        more="{hp:out}.log",
        ckpt="{checkpoints}",
    )
    assert given == {
        "lr": 0.1,
        "out": "/o/lr-0.1",
        "where": ["/d", {"x": "/m"}],
        "more": "/o/lr-0.1.log",
        "ckpt": "/c",
    }


@pytest.mark.parametrize(
    "value",
    [
        '{"a": {"b": 1}}',
        '{"model":{"x":2}}',
        "{}",
        "{lr: 0.1}",
        "{lr:0.1,b:2}",
        "{a,b}",
        "x{3}",
        "${model}",
        "${oc.env:HOME}",
        "{{ name }}",
        "{epoch:02d}-{val_loss:.2f}",
        "{'a': 1}",
        "%(model)s",
        "}{",
    ],
)
def test_other_braces_stay(value: str) -> None:
    check_placeholders("x", value)
    assert filled(x=value) == {"x": value}


def test_doubled_braces_become_single_ones() -> None:
    assert filled(x="{{model}}/{{hp:lr}}/{model}") == {"x": "{model}/{hp:lr}//m"}


def test_what_is_no_placeholder_is_refused_by_its_name() -> None:
    def checked(value: object, **known: Any) -> Callable[[], object]:
        return lambda: check_placeholders("hyperparameter 'x'", value, **known)

    refuses_each(
        [
            (checked("{chekpoints}"), ("'x'", "{chekpoints}", "{checkpoints}", "'checkpoints'")),
            (checked(["{modle}"]), ("{modle}", "{model}", "'model'")),
            (checked({"a": "{dta:train}"}), ("{dta:train}", "{data:CHANNEL}", "'data'")),
            (checked("{hp:lrr}", names=["lr"]), ("{hp:lrr}", "{hp:lr}", "'lr'")),
            (checked("{data:trian}", channels=["train"]), ("{data:trian}", "{data:train}", "'train'")),
            (checked("{data:train}", channels=[]), ("{data:train}", "channel")),
            (checked("$SM_CHECKPOINT_DIR"), ("$SM_CHECKPOINT_DIR", "{checkpoints}")),
            (checked("${SM_MODEL_DIR}/x"), ("${SM_MODEL_DIR}", "{model}")),
            (checked("$SM_CHANNEL_TRAIN"), ("$SM_CHANNEL_TRAIN", "{data:train}")),
            (lambda: filled(a="{hp:b}", b="{hp:a}"), ("{hp:a}", "value")),
            (lambda: filled(a="{hp:c}"), ("'a'", "{hp:c}", "{hp:a}")),
        ],
        ConfigurationError,
    )


def test_a_command_line_has_them_too() -> None:
    place = Place(rank=0, world_size=1, hosts=("h",), ports=((1,),), cpus=1, gpus=0)
    fillings = Fillings(folders=FOLDERS, hyperparameters={"lr": 0.1}, channels={"train": "/d"})
    line = "run --at {checkpoints} --lr={hp:lr} -d {data:train} '{{model}}' '${rank}' {program}"
    check_launcher(line)
    start = start_of(line, ("x/train",), place, options=LauncherOptions(fillings=fillings))
    assert start is not None
    assert start.command == ("run", "--at", "/c", "--lr=0.1", "-d", "/d", "{model}", "${rank}", "x/train")
    refuses_each(
        [
            (lambda: check_launcher("run {checkpoint} {program}"), ("launcher", "{checkpoint}", "'checkpoints'")),
            (lambda: check_launcher("run {hps:lr} {program}"), ("launcher", "{hps:lr}", "{hp:NAME}")),
        ],
        ConfigurationError,
    )
