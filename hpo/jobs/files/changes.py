"""Changes of a channel since its job began, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainers.channels import ROLES, Channel
from trainers.checking import some_of


def changed(recorded: Mapping[str, Any], channel: Channel) -> bool:
    """Whether a channel is another than when its job began, by its fingerprint and the names of its columns.

    Args:
        recorded: the channel in the job's record; see `record_inputs`.
        channel: as it is now.
    """
    before = recorded.get("fingerprint")
    if before is not None and channel.fingerprint() != before:
        return True
    were, are = _features(recorded), _features_of(channel)
    return were is not None and are is not None and were != are


def changes(recorded: Mapping[str, Any], channel: Channel) -> str:
    """What is not as it was, as far as the record tells.

    Args:
        recorded: the channel in the job's record; see `record_inputs`.
        channel: as it is now.

    Returns:
        Phrases such as "rows are 120, and were 100; file /rows/part-3.csv has another content".
    """
    found = [*_described(recorded, channel), *_parts(recorded.get("parts") or {}, channel.parts())]
    return "; ".join(found) or f"its fingerprint is {channel.fingerprint()}, and was {recorded.get('fingerprint')}"


def _features(recorded: Mapping[str, Any]) -> list[str] | None:
    """Names of the columns that are read as features, in the order that models have them in."""
    columns: list[str] | None = recorded.get("order", recorded.get("columns"))
    if columns is None:
        return None
    taken: set[Any] = set()
    for role in ("target", *ROLES, "dropped"):
        of_role = recorded.get(role)
        taken |= set(of_role) if isinstance(of_role, list | tuple) else {of_role}
    return [name for name in columns if name not in taken]


def _features_of(channel: Channel) -> list[str] | None:
    heading = channel.source.heading
    return list(heading.names) if heading is not None and heading.names is not None else None


def _described(was: Mapping[str, Any], channel: Channel) -> Iterator[str]:
    now = channel.describe()
    if was.get("target") is not None and now.get("target") is not None and was["target"] != now["target"]:
        yield f"its target is {now['target']!r}, and was {was['target']!r}"
    if was.get("distribution") != now.get("distribution"):  # Balanced where none was asked for.
        yield f"its distribution is {now.get('distribution')!r}, and was {was.get('distribution')!r}"
    yield from _sets([role for role in ROLES if role in was], list(channel.said))
    for key in ("rows", "count"):
        if was.get(key) is not None and now.get(key) is not None and was[key] != now[key]:
            yield f"{'rows' if key == 'rows' else 'files'} are {now[key]:,}, and were {was[key]:,}"
    were, are = was.get("categorical") or {}, now.get("categorical") or {}
    if others := [repr(name) for name in {**were, **are} if were.get(name) != are.get(name)]:
        yield f"categories are others, in {some_of(others)}"
    before, after = _features(was) or [], _features_of(channel) or []
    if sorted(before) == sorted(after) and before != after:
        yield "columns are in another order"
    yield from _sets([f"column {name!r}" for name in before], [f"column {name!r}" for name in after])


def _parts(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    if not was or not now:
        return
    files = [name for name in {**was, **now} if name.startswith("file ")]
    yield from _sets([name for name in files if name in was], [name for name in files if name in now])
    if other := [name for name, digest in was.items() if name in now and now[name] != digest]:
        yield f"{some_of(other)} {'has' if len(other) == 1 and other[0] != 'the labels' else 'have'} another content"


def _sets(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    for names, what in (
        ([name for name in after if name not in set(before)], "new"),
        ([name for name in before if name not in set(after)], "gone"),
    ):
        if names:
            yield f"{some_of(names)} {'is' if len(names) == 1 else 'are'} {what}"
