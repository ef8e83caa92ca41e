"""The command or the call that resumes a job, for its user to copy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from hpo.jobs.named_code import LEAVE, in_record
from hpo.jobs.raising import LIMITS
from hpo.observers import MODEL_CLASS, TUNER
from hpo.text import holds_secret


def how_to_resume(
    name: str, spec: Mapping[str, Any], store: str | None, *, training: bool = False, reason: str = ""
) -> str:
    """Return the command that resumes a job that was stopped, or the Python call where the command cannot.

    Args:
        name: the job.
        spec: of the job's row.
        store: database URL of the record; None is the default one.
        training: the job is a single training.
        reason: why the job stopped; where it reached a limit, the command raises that limit.

    Returns:
        The command or call; empty where no process can make the job again out of its record.
    """
    named = [code.name for code in in_record(spec)]
    parts = [part for part in (spec.get("strategy_config") or {}).values() if isinstance(part, Mapping)]
    given_as_objects = any("type" in part and part.get("arguments", {}) is None for part in parts)
    if given_as_objects or any("<" in code for code in named):
        return ""
    limit = next((each for each in LIMITS if reason.startswith(f"{each} ")), "")
    secret = store is not None and holds_secret(store)
    hint = ", with the store's URL in WARMBAND_STORE" if secret else ""
    shown = None if secret else store
    reopened = all(channel.get("open") for channel in (spec.get("inputs") or {}).values())
    if reopened and not any(code.startswith("__main__:") for code in named):
        words = ["hpo", "resume", name]
        words += ["--set", f"{'cost' if limit == 'max_cost' else 'tuning'}.{limit}=LARGER"] if limit else []
        words += ["--store", shown] if shown else []
        words += [LEAVE] if named else []
        return shlex.join(words) + hint
    attached = [repr(name), *([f"store={shown!r}"] if shown else []), *(["allow_code=True"] if named else [])]
    arguments = [*([] if reopened else ["inputs=..."]), *([f"{limit}=..."] if limit else [])]
    return f"{MODEL_CLASS if training else TUNER}.attach({', '.join(attached)}).resume({', '.join(arguments)}){hint}"
