"""Numbers, times, lists and lines as text for people."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from trainers import storage
from trainers.details import KNOWN_LENGTH, NO_MODEL, WARNINGS

if TYPE_CHECKING:
    from rich.console import Console

_URL = re.compile(r"://[^\s\"]+")
_USER = re.compile(r"://(?:[^/]*|[^/:]*:.*)@")
"""What is before the last @ of a URL's host; a password may have slashes and question marks in it."""

WORKERS = "num_workers"
"""As `trainers.gangs.scaling` has it, which needs Ray; whoever reads a record does without."""

LONGEST_DETAILS = 120
"""Letters of a line that tells what happened beside a trial's metrics."""


def printer(console: Console) -> Callable[..., None]:
    """Return a function that prints a text on a console; nothing in it is markup.

    A terminal gets lines that are broken between words. In a file or a pipe a sentence stays one line, for grep.
    """
    return partial(console.print, soft_wrap=not console.is_terminal, markup=False)


def count(number: int, noun: str) -> str:
    """A number and its noun."""
    return f"{number:,} {noun}" + ("s" if number != 1 else "")


def enumerated(names: Sequence[str]) -> str:
    """Names in a sentence: with commas, and an "and" before the last."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def roughly(seconds: float) -> str:
    """Seconds as somebody says them who does not know better: rounded up, the more coarsely the more they are."""
    if seconds <= 60:
        return f"{max(5, math.ceil(seconds / 5) * 5)} s"
    if seconds <= 3600:
        return f"{math.ceil(seconds / 60)} min"
    return f"{math.ceil(seconds / 360) / 10:g} h"


def estimated(seconds: float) -> str:
    """Seconds, as exact as an estimate may sound."""
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def clock_time(seconds: float) -> str:
    """Seconds as minutes and seconds, or hours, minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def in_bytes(number: int) -> str:
    """Bytes, in the unit that fits."""
    amount, unit = float(number), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def money(amount: float, currency: str) -> str:
    """An amount with its label: hundredths, and of less than one, two digits that say something."""
    decimals = 2 if amount == 0 or abs(amount) >= 1 else min(8, max(2, 1 - math.floor(math.log10(abs(amount)))))
    return f"{amount:,.{decimals}f} {currency}".rstrip()


def roles_text(channel: Mapping[str, Any]) -> str:
    """Return the roles of a recorded channel's columns, such as "predicts y, 2 classes, weight w".

    A role whose numbers came beside the table, not in a column of it, has no name behind it: "weight".

    Args:
        channel: as `trainers.channels.Channel.describe` has it.
    """
    from trainers.channels import ROLES, predicts, prepared

    parts = [f"predicts {what}"] if (what := predicts(channel)) else []
    for role in ROLES:
        columns = channel.get(role)
        if columns is not None:
            shown = ", ".join(map(str, columns)) if isinstance(columns, list | tuple) else str(columns)
            parts.append(f"{role} {shown}")
        elif role in channel:
            parts.append(role)
    return "; ".join([", ".join(parts), *prepared(channel)])


def forecast_text(forecast: Mapping[str, Any], *, stopped: bool) -> str:
    """A job's forecast, and its error where the job ran to its end."""
    expected, source = forecast["expected"], forecast["source"]
    text = f"{expected['worker_seconds']:,.1f} worker-seconds in {expected['wall_seconds']:,.1f} s"
    text = f"{text}, from {'the probe' if source == 'probe' else source}"
    wrong = [f"{name.replace('_', '-')} {error:+.0%}" for name, error in forecast.get("error", {}).items()]
    if stopped:
        return f"{text}; it was stopped before its end"
    return text + (f"; measured against that: {', '.join(wrong)}" if wrong else "")


def short(value: object) -> str:
    """A hyperparameter's value, to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def range_text(bounds: Mapping[str, Any]) -> str:
    """A hyperparameter's range, in the form that the record keeps it."""
    when = "".join(
        f"{', if ' if not place else ' and '}{name} is {' or '.join(map(str, values))}"
        for place, (name, values) in enumerate(bounds.get("when", {}).items())
    )
    if "values" in bounds:
        return "one of " + ", ".join(str(value) for value in bounds["values"]) + when
    scaling = "" if bounds["scaling_type"] == "Auto" else f", {bounds['scaling_type'].lower()}"
    kind = ", whole numbers" if bounds["type"] == "Integer" else ""
    if bounds["type"] == "Normal":
        about = "logarithms around" if bounds["scaling_type"] == "Logarithmic" else "around"
        kind, scaling = f", {about} {bounds['mean']:g} with deviation {bounds['standard_deviation']:g}", ""
    steps = f", in steps of {bounds['step']:g}" if "step" in bounds else ""
    return f"{bounds['min_value']:g} to {bounds['max_value']:g}{kind}{scaling}{steps}{when}"


def strategy_text(spec: Mapping[str, Any]) -> str:
    """The strategy of a job's record, where its configurations come from if it says, and the rule that stops trials."""
    options = spec.get("strategy_config") or {}
    source = {"model": ", suggestions by a model", "random": ", suggestions at random"}
    stopping = ", early stopping Auto" if spec.get("early_stopping_type") == "Auto" else ""
    parts = f": {told}" if (told := parts_text(spec)) else ""
    return f"{spec['strategy']}{source.get(options.get('suggestions', ''), '')}{parts}{stopping}"


def strategy_name(spec: Mapping[str, Any]) -> str:
    """The strategy of a job's record in a word, with the names of the searcher and the scheduler that it was given."""
    names = ", ".join(_class_name(part) for _, part in _search_parts(spec))
    return f"{spec['strategy']} ({names})" if names else str(spec["strategy"])


def parts_text(spec: Mapping[str, Any]) -> str:
    """The searcher and the scheduler that a job's record has, with their arguments; empty where it has neither."""
    return ", ".join(f"{role} {_part_text(part)}" for role, part in _search_parts(spec))


def _search_parts(spec: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    options = spec.get("strategy_config") or {}
    return [(role, options[role]) for role in ("searcher", "scheduler") if role in options]


def _class_name(part: Mapping[str, Any]) -> str:
    return str(part["type"]).rpartition(":")[2].rpartition(".")[2]


def _part_text(part: Any) -> str:
    """A part, or an argument of one, in which other parts may be nested."""
    if not isinstance(part, Mapping) or "type" not in part:
        return short(part)
    arguments = part.get("arguments", {})
    if arguments is None:
        return f"{_class_name(part)} (an object)"
    given = ", ".join(f"{name}={_part_text(value)}" for name, value in arguments.items())
    return f"{_class_name(part)}({given})" if given else _class_name(part)


def decimal(number: float, digits: int | None = None) -> str:
    """A number with so many digits after the point; None shows four significant ones."""
    if not math.isfinite(number):
        return {math.inf: "∞", -math.inf: "-∞"}.get(number, "NaN")
    if digits is not None:
        return f"{number:,.{digits}f}"
    if 1e3 <= abs(number) < 1e6:
        return f"{number:,.0f}"
    mantissa, e, exponent = f"{number:.4g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def places(*scores: float) -> int | None:
    """Digits after the point of scores that stand beside each other; None: four significant ones each."""
    return 4 if all(1e-2 <= abs(score) < 100 for score in scores) else None


def mean_text(value: float, error: float | None, trials: int) -> str:
    """The mean of a configuration's trials, with its standard error where that is known."""
    spread = "" if error is None else f" \u00b1 {error:.5f}"
    return f"{value:.5f}{spread}, mean of {trials} trials"


def workers_text(spec: Mapping[str, Any]) -> str:
    """How many workers train a trial, of a job whose spec the record keeps: one number, a range, or tuned ones."""
    estimator = spec["estimator"]
    workers = estimator["scaling"]["num_workers"]
    if workers == 0:
        return "the command's own process"
    if tuned := spec["hyperparameter_ranges"].get(WORKERS):
        return f"tuned: {range_text(tuned)}"
    workers = estimator["hyperparameters"].get(WORKERS) or workers  # As for a trainer, which asks these first.
    if isinstance(workers, int):
        return f"{workers} a trial"
    least, most = workers
    return f"{least} to {most} a trial, as there is room"


def first_line(text: str) -> str:
    """The first line of a message that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no words")


def untuned_text(untuned: Mapping[str, Any]) -> str:
    """The text for an un-tuned run without a value."""
    if "diverged" in untuned:
        return f"diverged after {count(untuned['resource'], 'unit')}: {first_line(untuned['diverged'])}"
    return f"failed: {untuned['failure']}"


def details_text(details: Mapping[str, Any]) -> str:
    """A trial's details beside its metrics, in a line; those that would make a long one are left out."""
    parts = [_communication_text(details["communication"])] if "communication" in details else []
    parts += [f"profile {masked(details['profile']['trace'])}"] if "profile" in details else []
    parts += [no_model_text(details)] if details.get(NO_MODEL) else []
    apart = ("communication", "profile", WARNINGS, NO_MODEL)
    others = {name: value for name, value in details.items() if name not in apart}
    return ", ".join(part for part in (*parts, _plain_details(others)) if part)


def no_model_text(details: Mapping[str, Any]) -> str:
    """The text for a trial whose program left no model.

    Args:
        details: of the trial, which tell whether the trainer knows the program's length.
    """
    text = "no model: the program wrote nothing to SM_MODEL_DIR; let it save its model there before it ends"
    if details[NO_MODEL] == KNOWN_LENGTH:
        return text
    return f"{text}, and give the trainer's length, so that a trial comes to that end"


def communication_share(measured: Mapping[str, Any]) -> float | None:
    """The part of all workers' steps in which they waited for others; None where no step was measured."""
    seconds = sum((measured.get("step_seconds") or {}).values())
    return sum(measured["waiting_seconds"].values()) / seconds if seconds else None


def _communication_text(measured: Mapping[str, Any]) -> str:
    share, sizes = communication_share(measured), [*measured.get("bytes", {}).values()]
    if share is None or not sizes:
        return ""
    return f"communication {share:.1%} of the steps' time, {in_bytes(round(sum(sizes) / len(sizes)))} a worker"


def _plain_details(details: Mapping[str, Any]) -> str:
    text = ", ".join(
        f"{name} ({_plain_details(value)})" if isinstance(value, Mapping) else f"{name} {short(value)}"
        for name, value in details.items()
    )
    return text if len(text) <= LONGEST_DETAILS and "()" not in text else ""


def packed(parts: Sequence[str], width: int) -> list[str]:
    """Parts with commas between, in lines of at most `width` characters where no part is longer itself."""
    lines: list[str] = []
    for number, part in enumerate(parts):
        text = part + ("," if number < len(parts) - 1 else "")
        if lines and len(lines[-1]) + 1 + len(text) <= width:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return lines


def masked(text: str) -> str:
    """Text without the names, passwords and keys of its URLs; a bit more is taken where it may be of a password."""
    return _URL.sub(lambda found: storage.shown(_USER.sub("://***@", found[0])), text)


def holds_secret(text: str) -> bool:
    """Whether a URL of a text has a password or a key in it; a user's name alone is none."""
    without_names = re.sub(r"://[^/:@\s]*@", "://", text)
    return masked(without_names) != without_names


def plain(value: Any) -> Any:
    """A value as JSON has it: times in ISO 8601, None for numbers that are not finite."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
