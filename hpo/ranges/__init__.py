"""Ranges of tuned hyperparameters, under the names that users of SageMaker know, and their form in Ray Tune."""

from hpo.ranges.categorical import CategoricalParameter
from hpo.ranges.normal import NormalParameter
from hpo.ranges.numeric import ContinuousParameter, IntegerParameter
from hpo.ranges.points import checked_point, checked_points
from hpo.ranges.space import ParameterRange, check_ranges, decode, encode, range_from_json, search_space
from hpo.ranges.values import Scalar

__all__ = [
    "CategoricalParameter",
    "ContinuousParameter",
    "IntegerParameter",
    "NormalParameter",
    "ParameterRange",
    "Scalar",
    "check_ranges",
    "checked_point",
    "checked_points",
    "decode",
    "encode",
    "range_from_json",
    "search_space",
]
