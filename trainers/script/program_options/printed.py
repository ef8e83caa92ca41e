"""Metrics in what a program prints, found in its calls of `print` and of loggers, with expressions that read them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainers.script.program_options.source import Module, Source, keywords

_PRINTS = ("print", "echo", "secho", "write", "info", "warning", "debug", "log", "pprint", "main_print", "print_log")
_METRIC = re.compile(
    r"loss|acc(?:uracy)?\b|acc[@_\d]|accuracy|auc|\bf1|f1[_-]|bleu|rouge|perplexity|\bppl|rmse|\bmse|\bmae|mse\b|mae\b|"
    r"\br2\b|score|reward|\breturn|error|\berr\b|\biou|miou|\bmap\b|precision|recall|psnr|ssim|\bwer\b|\bcer\b|"
    r"top[-_ @]?[15]|dice|nll|elbo|\bndcg|metric",
    re.IGNORECASE,
)
_STEP = re.compile(r"\b(?:epoch|step|iter|iteration|round|update|it)s?$|epoch|global_step|\bstep|\biter", re.IGNORECASE)
_LOW = re.compile(r"loss|err|perplexity|ppl|rmse|mse|mae|\bwer|\bcer|nll|elbo", re.IGNORECASE)
_HELD_OUT = re.compile(r"val|test|eval|dev|held", re.IGNORECASE)
_PERCENT = re.compile(r"%(?:\((?P<key>\w+)\))?[-+ #0]*(?:\d+|\*)?(?:\.\d+)?[diouxXeEfFgGcrsa]")
_FIELD = re.compile(r"\{(?P<name>[^{}:!]*)(?:![rsa])?(?::(?P<spec>[^{}]*))?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedMetric:
    """A metric that a program prints.

    Args:
        name: a name for it.
        regex: an expression that reads it, with the group `value`, and `step` where the line has the program's counter.
        line: as the source has it, on one line.
        place: the file and the line of the call.
        step: what the program calls its counter; empty where the line has none.
        doubt: what to look at before a search; empty where the line tells all.
    """

    name: str
    regex: str
    line: str
    place: str
    step: str = ""
    doubt: str = ""

    @property
    def smaller_is_better(self) -> bool:
        """Whether it is a loss or an error."""
        return bool(_LOW.search(self.name))

    @property
    def rank(self) -> tuple[bool, bool, bool, bool]:
        """For sorting: metrics of held-out data first, those before losses, and lines with a counter before others."""
        named = bool(_HELD_OUT.search(self.name))
        line = bool(_HELD_OUT.search(self.line)) and "train" not in self.name.lower()
        return (not named, not line, self.smaller_is_better, not self.step)


@dataclass(frozen=True, slots=True)
class _Hole:
    """A value in a printed line: the words of its expression, and its format."""

    name: str
    spec: str = ""


def printed_metrics(source: Source) -> list[PrintedMetric]:
    """Metrics of all lines that a program prints, the likeliest objective first; one of each name."""
    found: dict[str, PrintedMetric] = {}
    every = [each for module, call in source.calls() for each in _of_call(source, module, call)]
    for metric in sorted([*every, *_of_libraries(source)], key=lambda each: each.rank):
        found.setdefault(metric.name, metric)
    return list(found.values())


def _of_call(source: Source, module: Module, call: ast.Call) -> Iterator[PrintedMetric]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in _PRINTS or not call.args:
        return
    formats = name not in ("print", "echo", "write", "secho")
    parts = _joined(_of_arguments(call.args, formats=formats))
    path = module.path.relative_to(source.folder) if module.path.is_relative_to(source.folder) else module.path
    place = f"{path}:{call.lineno}"
    line = " ".join(ast.unparse(call).split())
    for at, hole in enumerate(parts):
        if isinstance(hole, _Hole) and (metric := _metric_name(parts, at)):
            regex, step = _expression(parts, at)
            if regex:
                doubt = "" if _is_label(parts, at) else "the line has no word of it; it may print more than a number"
                yield PrintedMetric(name=metric, regex=regex, line=line, place=place, step=step, doubt=doubt)


def _of_arguments(arguments: list[ast.expr], *, formats: bool) -> Iterator[str | _Hole]:
    """The parts of a printed line: of `print` with spaces between its arguments, of a logger as `%` puts them in."""
    first, *rest = arguments
    if formats and rest and isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield from _of_percent(first.value, rest)
        return
    for place, argument in enumerate(arguments):
        if isinstance(argument, ast.Starred):
            return
        if place:
            yield " "
        yield from _of_expression(argument)


def _joined(parts: Iterable[str | _Hole]) -> list[str | _Hole]:
    """Parts in which no text follows another."""
    found: list[str | _Hole] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return found


def _of_expression(node: ast.expr) -> Iterator[str | _Hole]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            for each in values:
                if isinstance(each, ast.FormattedValue):
                    spec = "".join(
                        part.value
                        for part in getattr(each.format_spec, "values", [])
                        if isinstance(part, ast.Constant) and isinstance(part.value, str)
                    )
                    yield _Hole(_words(each.value), spec)
                elif isinstance(each, ast.Constant):
                    yield str(each.value)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format"), args=values):
            yield from _of_format(text, list(values), {each.arg: each.value for each in node.keywords if each.arg})
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod(), right=right):
            given = list(right.elts) if isinstance(right, ast.Tuple) else [right]
            yield from _of_percent(text, given)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _of_expression(left)
            yield from _of_expression(right)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            yield _Hole(_words(inner))
        case ast.Call(func=function, args=[ast.Dict() as values, *_]) if ast.unparse(function).endswith("dumps"):
            yield from _of_dict(values, '"')
        case ast.Dict():
            yield from _of_dict(node, "'")
        case _:
            yield _Hole(_words(node))


def _of_dict(node: ast.Dict, quote: str) -> Iterator[str | _Hole]:
    for place, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield f"{', ' if place else '{'}{quote}{key.value}{quote}: "
            yield _Hole(_words(value))
    yield "}"


def _of_format(text: str, values: list[ast.expr], named: dict[str, ast.expr]) -> Iterator[str | _Hole]:
    end, number = 0, 0
    for found in _FIELD.finditer(text.replace("{{", "\x01\x01").replace("}}", "\x02\x02")):
        yield text[end : found.start()].replace("{{", "{").replace("}}", "}")
        end = found.end()
        name = found["name"]
        key = name or str(number)
        number += not name
        value = named.get(name) or (values[int(key)] if key.isdigit() and int(key) < len(values) else None)
        yield _Hole(_words(value) if value is not None else name, found["spec"] or "")
    yield text[end:].replace("{{", "{").replace("}}", "}")


def _of_percent(text: str, values: list[ast.expr]) -> Iterator[str | _Hole]:
    end = 0
    for number, found in enumerate(_PERCENT.finditer(text.replace("%%", "\x01\x01"))):
        yield text[end : found.start()].replace("%%", "%")
        end = found.end()
        name = found["key"] or (_words(values[number]) if number < len(values) else "")
        yield _Hole(name, found[0])
    yield text[end:].replace("%%", "%")


def _words(node: ast.expr) -> str:
    """What an expression calls its value: the names in it."""
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    inner = [each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)]
    keys = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return " ".join([*names, *inner, *keys])


def _label(parts: list[str | _Hole], at: int) -> str:
    """The words before a value, as a name."""
    before = parts[at - 1] if at else ""
    if not isinstance(before, str):
        return ""
    written = re.search(r"([A-Za-z][\w@/. -]*?)['\"]?\s*[:=]?\s*\(?['\"]?$", before.rpartition(",")[2] or before)
    return re.sub(r"\W+", "_", written[1].strip()).strip("_") if written else ""


def _is_label(parts: list[str | _Hole], at: int) -> bool:
    """Whether the words before a value name a metric."""
    label = _label(parts, at)
    return bool(label and _METRIC.search(label.replace("_", " ")) and not _STEP.search(label.rpartition("_")[2]))


def _metric_name(parts: list[str | _Hole], at: int) -> str:
    """The name of a value that is a metric; empty of others: the words before it count more than its expression."""
    hole, label = parts[at], _label(parts, at)
    assert isinstance(hole, _Hole)
    if _is_label(parts, at):
        return label
    if not label or not re.search(r"[A-Za-z]{2}", label):
        named = [word for word in hole.name.split() if _METRIC.search(word.replace("_", " ")) and word.isidentifier()]
        return named[0] if named else ""
    return ""


def _expression(parts: list[str | _Hole], at: int) -> tuple[str, str]:
    """The expression of a value, and what the counter before it is called."""
    step = next((place for place in range(at) if isinstance(parts[place], _Hole) and _is_step(parts, place)), None)
    hole = parts[at]
    assert isinstance(hole, _Hole)
    value = f"(?P<value>{_number(hole, parts[at + 1] if at + 1 < len(parts) else '')})"
    start = at - 1 if step is None else step - 1
    regex = ""
    for place in range(max(start, 0), at):
        part = parts[place]
        if isinstance(part, str):
            text = part.rpartition("\n")[2] if place == start else part
            regex += _escaped(text)
        else:
            regex += rf"{_padding(part)}(?P<step>\d+)" if place == step else r".*?"
    if not any(isinstance(part, str) and re.search(r"[A-Za-z]", part) for part in parts[max(start, 0) : at]):
        return "", ""
    counter = parts[step] if step is not None else None
    return f"{regex}{_padding(hole)}{value}", counter.name.split()[0] if isinstance(
        counter, _Hole
    ) and counter.name else ""


def _padding(hole: _Hole) -> str:
    """The spaces before a number that is printed with a width or with a space in place of a sign."""
    return r"\s*" if re.match(r"%?[<>^=+#]*(?: |[1-9])", hole.spec) else ""


def _is_step(parts: list[str | _Hole], place: int) -> bool:
    hole, before = parts[place], parts[place - 1] if place else ""
    assert isinstance(hole, _Hole)
    written = isinstance(before, str) and bool(re.search(r"(?:epoch|step|iter\w*|round)\W*$", before, re.IGNORECASE))
    whole = not re.search(r"[.efg]", hole.spec) or "d" in hole.spec
    return written and whole


def _number(hole: _Hole, after: str | _Hole) -> str:
    """What a printed number looks like: all up to a space, or digits and signs where something follows at once."""
    if isinstance(after, str) and (not after or after[0].isspace()) and "%" not in after[:1]:
        return r"\S+"
    return f"[-+0-9.eEinfa{',' if ',' in hole.spec else ''}]*[0-9nf]"


def _escaped(text: str) -> str:
    return re.sub(r"\s+", r"\\s+", re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", text))


def _calls(call: ast.Call, method: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == method


def _of_libraries(source: Source) -> Iterator[PrintedMetric]:
    """Lines that libraries print while they train."""
    names = {
        call.func.attr if isinstance(call.func, ast.Attribute) else module.dotted(call.func).rpartition(".")[2]
        for module, call in source.calls()
    }
    keras = source.imports("keras") or source.imports("tensorflow")
    if keras and "fit" in names:
        given = {key for module, call in source.calls() for key in keywords(call) if _calls(call, "fit")}
        held_out = bool(given & {"validation_data", "validation_split"})
        yield PrintedMetric(
            name="val_loss" if held_out else "loss",
            regex=r"val_loss: (?P<value>\S+)" if held_out else r"(?<!\w)loss: (?P<value>\S+)",
            line="model.fit(...), as Keras prints",
            place="Keras",
            doubt="" if held_out else "training data's; give fit() validation_data and verbose=2, one line an epoch",
        )
    if source.imports("transformers") and names & {"Trainer", "Seq2SeqTrainer", "SFTTrainer"}:
        yield PrintedMetric(
            name="eval_loss",
            regex=r"'eval_loss': '?(?P<value>[-+0-9.eEinfa]+)",
            line="Trainer(...), as Transformers prints",
            place="Transformers",
        )
