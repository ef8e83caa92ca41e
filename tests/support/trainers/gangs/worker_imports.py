"""Modules that workers do not import."""

from __future__ import annotations

OF_DRIVERS = {
    "hpo",
    "trainers.channels.channel",
    "trainers.channels.inputs",
    "trainers.channels.files.opening",
    "trainers.cluster.draining",
    "trainers.cluster.head",
    "trainers.cluster.placement",
    "trainers.cluster.session",
    "trainers.cluster.shared_paths",
    "trainers.gangs.capacity",
    "trainers.gangs.departures",
    "trainers.gangs.gang",
    "trainers.gangs.in_process",
    "trainers.gangs.planning",
    "trainers.gangs.ray_gangs",
    "trainers.gangs.scaling",
    "trainers.gangs.sharing",
    "trainers.pytorch.allreduce_trainer",
    "trainers.pytorch.function_trainer",
    "trainers.registry",
    "trainers.result",
    "trainers.trainer",
    "trainers.xgboost.checks",
    "trainers.xgboost.trainer",
}
"""Modules and packages that only a driver needs."""
