"""Ranges of tuned hyperparameters, under the names that users of SageMaker know, and their form in Ray Tune."""

from hpo.ranges.categorical import CategoricalParameter
from hpo.ranges.conditions import check_conditions, parents_first, present
from hpo.ranges.corners import corners, extremes
from hpo.ranges.grid import combinations, count_combinations
from hpo.ranges.kinds import ParameterRange, range_from_json
from hpo.ranges.normal import NormalParameter
from hpo.ranges.numeric import ContinuousParameter, IntegerParameter
from hpo.ranges.points import checked_point, checked_points
from hpo.ranges.space import check_ranges, decode, encode, nearest, search_space
from hpo.ranges.steps import exactly
from hpo.ranges.values import Scalar

__all__ = [
    "CategoricalParameter",
    "ContinuousParameter",
    "IntegerParameter",
    "NormalParameter",
    "ParameterRange",
    "Scalar",
    "check_conditions",
    "check_ranges",
    "checked_point",
    "checked_points",
    "combinations",
    "corners",
    "count_combinations",
    "decode",
    "encode",
    "exactly",
    "extremes",
    "nearest",
    "parents_first",
    "present",
    "range_from_json",
    "search_space",
]
