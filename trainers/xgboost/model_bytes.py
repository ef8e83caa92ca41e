"""Bytes of a model, checked before XGBoost reads them: XGBoost 3.2 ends the process at some that are cut or changed."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DEEPEST = 64
"""Objects and arrays within each other; XGBoost's have 8."""
_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_UNPACK = {marker: struct.Struct(f">{code}").unpack_from for marker, code in zip("iUIlLdD", "bBhiqfd", strict=True)}
_SIZE = {marker: np.dtype(kind).itemsize for marker, kind in _NUMBERS.items()}
_PLAIN = {"Z": None, "T": True, "F": False}
_NODES = ("right_children", "parents", "split_indices", "split_type", "default_left", "split_conditions")
"""Arrays of a tree with one value for each node, beside `left_children`."""


class FlawedModelError(ValueError):
    """Bytes are no whole model."""


def check_model(raw: bytes) -> None:
    """Refuse bytes that are no whole model, or whose trees lead out of their own nodes or features.

    Names and kinds of parts are left to XGBoost, which says itself what is wrong with them.

    Args:
        raw: of a file, UBJSON or JSON.

    Raises:
        FlawedModelError: saying what is wrong.
    """
    try:
        if raw[:1] == b"{" and raw[1:2] in (b'"', b" ", b"\n", b"\r", b"\t", b""):
            model = json.loads(raw)
        else:
            model = Reader(raw).whole()
        _check_learner(model["learner"])
    except FlawedModelError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise FlawedModelError(f"it has other parts ({type(error).__name__}: {error})") from None


class Reader:
    """A reader of UBJSON that never reads behind the end of its bytes; arrays of one kind become NumPy's.

    Args:
        raw: the bytes.
    """

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def whole(self) -> Any:
        """Return the one value that the bytes hold.

        Raises:
            FlawedModelError: they are cut, longer, or none.
        """
        value = self._value(self._marker(), 0)
        if self._at != len(self._raw):
            raise FlawedModelError(f"its model ends at byte {self._at}, and more follows")
        return value

    def _taken(self, size: int) -> int:
        at = self._at
        if size < 0 or size > len(self._raw) - at:
            raise FlawedModelError(f"it has {len(self._raw)} bytes, and a part of {size} bytes begins at byte {at}")
        self._at = at + size
        return at

    def _marker(self) -> str:
        return chr(self._raw[self._taken(1)])

    def _count(self) -> int:
        marker = self._marker()
        if marker not in "iUIlL":
            raise FlawedModelError(f"it is no UBJSON at byte {self._at - 1}: a length belongs there")
        return int(self._value(marker, 0))

    def _text(self) -> str:
        size = self._count()
        at = self._taken(size)
        return self._raw[at : at + size].decode()

    def _value(self, marker: str, depth: int) -> Any:
        if marker in _SIZE:
            return _UNPACK[marker](self._raw, self._taken(_SIZE[marker]))[0]
        if marker in _PLAIN:
            return _PLAIN[marker]
        if marker == "S":
            return self._text()
        if marker == "C":
            return self._marker()
        if depth == _DEEPEST:
            raise FlawedModelError(f"it has more than {_DEEPEST} parts within each other")
        if marker == "{":
            return self._object(depth + 1)
        if marker == "[":
            return self._array(depth + 1)
        raise FlawedModelError(f"it is no UBJSON at byte {self._at - 1}")

    def _object(self, depth: int) -> dict[str, Any]:
        found = {}
        while self._raw[self._at : self._at + 1] != b"}":
            name = self._text()
            found[name] = self._value(self._marker(), depth)
        self._taken(1)
        return found

    def _array(self, depth: int) -> Any:
        marker = self._marker()
        if marker == "$":
            kind = self._marker()
            if kind not in _NUMBERS or self._marker() != "#":
                raise FlawedModelError(f"it has an array of no known kind at byte {self._at - 1}")
            count = self._count()
            at = self._taken(count * _SIZE[kind])
            return np.frombuffer(self._raw, _NUMBERS[kind], count, at)
        if marker == "#":
            count = self._count()
            if count > len(self._raw) - self._at:
                raise FlawedModelError(
                    f"it has {len(self._raw)} bytes, and a list of {count} values begins at byte {self._at}"
                )
            return [self._value(self._marker(), depth) for _ in range(count)]
        found = []
        while marker != "]":
            found.append(self._value(marker, depth))
            marker = self._marker()
        return found


def _check_learner(learner: Mapping[str, Any]) -> None:
    booster = learner["gradient_booster"]
    model = booster.get("gbtree", booster)["model"]
    features = int(learner["learner_model_param"]["num_feature"])
    if "trees" not in model:
        return
    for number, tree in enumerate(model["trees"]):
        try:
            _check_tree(tree, features)
        except FlawedModelError as error:
            raise FlawedModelError(f"tree {number} {error}") from None
    groups = max(1, int(learner["learner_model_param"].get("num_class", 0)))
    groups = max(groups, int(learner["learner_model_param"].get("num_target", 1)))
    _check_within("tree_info", _whole(model["tree_info"]), groups)
    if len(model["tree_info"]) != len(model["trees"]):
        raise FlawedModelError(f"it has {len(model['trees'])} trees, and tells groups of {len(model['tree_info'])}")
    indptr = _whole(model["iteration_indptr"])
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != len(model["trees"]) or (np.diff(indptr) < 0).any():
        raise FlawedModelError("its rounds are not those of its trees")


def _check_tree(tree: Mapping[str, Any], features: int) -> None:
    count = int(tree["tree_param"]["num_nodes"])
    left = _whole(tree["left_children"])
    for name in ("left_children", *_NODES):
        if len(tree[name]) != count:
            raise FlawedModelError(f"has {count} nodes, and {len(tree[name])} {name}")
    if not count:
        raise FlawedModelError("has no nodes")
    inner = left != -1
    children = np.concatenate([left[inner], _whole(tree["right_children"])[inner]])
    _check_within("children", children, count)
    if len(children) and np.bincount([0, *children]).max() > 1:
        raise FlawedModelError("has a node with two parents")
    (nodes,) = np.nonzero(inner)
    if (_whole(tree["parents"])[children] != np.concatenate([nodes, nodes])).any():
        raise FlawedModelError("has a node whose parent is another")
    _check_within("split_indices", _whole(tree["split_indices"])[inner], features)
    _check_within("split_type", _whole(tree["split_type"]), 2)
    leaf = int(tree["tree_param"]["size_leaf_vector"])
    if leaf > 1:
        leaves = _whole(tree["right_children"])[~inner]
        _check_within("leaves", leaves, len(tree["leaf_weights"]) // leaf)
    _check_within("categories_nodes", _whole(tree["categories_nodes"]), count)
    starts, sizes = _whole(tree["categories_segments"]), _whole(tree["categories_sizes"])
    if len(starts) != len(sizes) or len(starts) != len(tree["categories_nodes"]):
        raise FlawedModelError("has categories of other nodes")
    if len(starts) and (min(starts.min(), sizes.min()) < 0 or (starts + sizes).max() > len(tree["categories"])):
        raise FlawedModelError("has categories that are not there")
    _check_within("categories", _whole(tree["categories"]), 1 << 24)


def _whole(values: Any) -> NDArray[np.int64]:
    found = np.asarray(values)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iub"):
        raise FlawedModelError("has an array that is not of whole numbers")
    return found.astype(np.int64)


def _check_within(name: str, values: NDArray[np.int64], end: int) -> None:
    if len(values) and not 0 <= values.min() <= values.max() < end:
        raise FlawedModelError(f"has {name} from {values.min()} to {values.max()}, and {end} of them")
