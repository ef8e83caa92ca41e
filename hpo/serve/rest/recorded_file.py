"""`recorded_file`: a job of the record as a job file, and what of it a person has to fill in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from hpo.job_file import json_schema, problems_of
from hpo.record import JobRow, is_training
from trainers.channels import ROLES

_TYPES = {
    "XGBoostTrainer": "xgboost",
    "TorchTrainer": "torch",
    "ParameterServerTrainer": "parameter_server",
    "ScriptTrainer": "script",
    "RayTrainTrainer": "ray_train",
}
_RENAMED = {
    "placement_strategy": "placement",
    "min_value": "min",
    "max_value": "max",
    "scaling_type": "scaling",
    "completion_criteria": "completion",
    "strategy_config": "hyperband",
    "paths": "path",
}


def recorded_file(job: JobRow) -> dict[str, Any]:
    """A job as a job file, without its name, its seed and the record that it is in.

    Args:
        job: its row.

    Returns:
        "file", whose keys are those of the record that a job file has, and "missing", a text for each thing that a
        person has to fill in: data of a Python program, a trainer of one's own, what the file's check says.
    """
    missing: list[str] = []
    spec = {key: value for key, value in job.spec.items() if key != "random_seed"}
    schema = json_schema(training=is_training(job))
    group = "training" if is_training(job) else "tuning"
    model = schema["$defs"][group.capitalize()]["properties"]
    if spec.get("strategy") not in ("Hyperband", "ASHA"):
        spec.pop("strategy_config", None)
        if group == "tuning" and spec.get("strategy") not in ("Bayesian", "Random", "Grid"):
            spec.pop("strategy", None)
            missing.append("tuning: the job's strategy was made by a Python program; give strategy or searcher")
    search = _given(spec, model)
    if group == "tuning":
        search["ranges"] = {name: _range(state) for name, state in spec["hyperparameter_ranges"].items()}
    file = {
        **_given({key: value for key, value in spec.items() if key != "tags"}, schema["properties"]),
        "data": {"channels": dict(_channels(spec.get("inputs") or {}, schema, missing))},
        "trainer": _trainer(spec["estimator"], schema, missing),
        group: search,
        **({"cost": cost} if (cost := _cost(spec, schema)) else {}),
        **({"tags": {tag["Key"]: tag["Value"] for tag in spec["tags"]}} if spec.get("tags") else {}),
    }
    file.pop("storage_path", None)
    if not missing:
        missing += [f"{field}: {message}" for field, message in problems_of(file).items()]
    return {"file": file, "missing": missing}


def _given(found: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """What of the record has a key in the file and is not its default."""
    named = {_RENAMED.get(key, key): value for key, value in found.items()}
    return {
        key: value
        for key, value in named.items()
        if key in properties and value is not None and value not in ([], {}) and value != properties[key].get("default")
    }


def _range(state: Mapping[str, Any]) -> dict[str, Any]:
    named = {_RENAMED.get(key, key): value for key, value in state.items() if value is not None}
    return {**named, "type": str(state["type"]).lower()}


def _channels(
    inputs: Mapping[str, Any], schema: Mapping[str, Any], missing: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, found in inputs.items():
        opened = found.get("open") or {}
        if not opened.get("paths"):
            missing.append(
                f"data.channels.{name}: the job's data were not files that the record names; give path, or a dataset"
            )
            continue
        properties = schema["$defs"]["Files"]["properties"]
        paths = opened["paths"]
        roles = {role: found[role] for role in ("target", *ROLES) if role in found}
        keys = {**opened, **roles, "paths": paths[0] if len(paths) == 1 else paths}
        if isinstance(columns := found.get("columns"), list):
            keys |= {key: [columns[at] for at in opened.get(key) or ()] for key in ("categorical", "drop", "keep")}
        yield name, _given(keys, properties)


def _trainer(state: Mapping[str, Any], schema: Mapping[str, Any], missing: list[str]) -> dict[str, Any]:
    kind = _TYPES.get(state.get("trainer", ""))
    if kind is None:
        missing.append(f"trainer: the job's trainer is {state.get('trainer', 'several')}; give it by type")
        return {}
    defs, mapping = schema["$defs"], schema["properties"]["trainer"]["discriminator"]["mapping"]
    properties = defs[os.path.basename(mapping[kind])]["properties"]
    own = {**state["scaling"], **state["options"]}
    for key in state["options"]:
        if _RENAMED.get(key, key) not in properties:
            missing.append(f"trainer: its {key} has no key of that name in a job file; give what it stands for")
    if state.get("code"):
        missing.append(f"trainer: it calls code of a Python program: {', '.join(map(str, state['code']))}")
    return {"type": kind, **_given({**own, "hyperparameters": state["hyperparameters"]}, properties)}


def _cost(spec: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    prices = {**(spec.get("prices") or {}), "max_cost": spec.get("max_cost")}
    return _given(prices, schema["$defs"]["Cost"]["properties"])
