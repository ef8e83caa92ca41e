"""The live view of a running job on a terminal, and the choice between it and plain lines."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable
from typing import Literal, Self

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.live import Live
from rich.text import Text

from hpo.observers.counters import Places, Tally
from hpo.observers.progress import Goal, Progress
from hpo.observers.training import lines_for
from hpo.search import INTERRUPTED, JobState, TrialRun
from hpo.strategies import Bracket
from hpo.text import clock_time, count, packed, printer, short
from trainers.errors import ConfigurationError

FRAME_SECONDS = 0.5
QUIET_SECONDS = 1.0
"""How often the view is drawn where something happened, and where only time has passed."""

WIDEST = 100
INDENT = 11


def console_for(console: Console | Literal[False] | None) -> Console:
    """Where a job prints.

    Args:
        console: it; None is standard output, and False nowhere.

    Raises:
        ConfigurationError: it is something else.
    """
    if console is False:
        return Console(quiet=True, file=io.StringIO())  # No terminal, in which a view would be drawn.
    if not isinstance(console, Console | None):
        raise ConfigurationError(
            f"console is {console!r}; give a rich.console.Console, None for standard output, or False to print nothing"
        )
    return console or Console(highlight=False)


def watcher_for(console: Console, goal: Goal) -> Progress:
    """What shows a job on this console: the live view on a terminal, else a line an event; so a training anywhere."""
    if not goal.training and console.is_terminal and not console.is_dumb_terminal and not console.is_jupyter:
        return LiveProgress(goal, console)
    return lines_for(goal, printer(console))


class LiveProgress(Progress):
    """Brackets filling, the best so far, gangs, time and cost, drawn in place while the job runs.

    It is drawn from the job's own loop, and what is printed through the console appears above it.

    Args:
        goal: what the job is after.
        console: a terminal.
        clock: seconds, on any clock that runs forward.
    """

    def __init__(self, goal: Goal, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(goal, printer(console), clock)
        self._console = console
        self._marks = Marks.of(console)
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._drawn = -QUIET_SECONDS
        self._changed = True

    def __enter__(self) -> Self:
        self._live.start()
        self._live.update(Text("starting", style="dim"), refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.update(self._lines([self._title(), *self._brackets(self._console.height)]))
        self._live.stop()

    def trial(self, run: TrialRun) -> None:
        """See `Observer.trial`."""
        self._changed = True
        super().trial(run)

    def progress(self, state: JobState) -> None:
        """See `Observer.progress`."""
        super().progress(state)
        now = self._clock()
        if now - self._drawn < (FRAME_SECONDS if self._changed else QUIET_SECONDS):
            return
        self._drawn, self._changed = now, False
        self._live.update(self.view(state), refresh=True)

    def view(self, state: JobState) -> Text:
        """The whole view, no higher and no wider than the terminal."""
        room = self._console.height - 1
        below = self._below(state)[: room - 1]
        return self._lines([self._title(), *self._brackets(room - 1 - len(below)), *below])

    # ---- parts, from above

    def _title(self) -> Text:
        seconds = clock_time(self._clock() - self._began)
        aim = f"{self.goal.objective_type.lower()} {self.goal.metric}"
        title = Text.assemble((self.goal.job, "bold"), "  ", (aim, "dim"))
        title = shortened(title, self._width - len(seconds) - 2)
        return title + " " * (self._width - title.cell_len - len(seconds)) + Text(seconds, style="dim")

    def _brackets(self, room: int) -> list[Text]:
        """A line a bracket; a line a kind of bracket where they are too many, and the first of them if still so."""
        if room < 2:
            return []
        tally, brackets = self.tally, self.goal.plan.brackets
        if len(brackets) < room:
            rows = [(f"bracket {index + 1}", bracket, tally.places[index]) for index, bracket in enumerate(brackets)]
        else:
            rows = [
                (f"{places[0].alike} alike" if places[0].alike > 1 else "bracket", bracket, places)
                for bracket, places in tally.kinds.items()
            ]
        return grid(rows[: room - 1], self._width, self._marks)

    def _below(self, state: JobState) -> list[Text]:
        tally, resource = self.tally, self._resource
        trained = min(resource, state.trained + state.ahead)
        bar = self._marks.bar(trained, 0, resource, max(5, min(20, self._width - INDENT - 36)))
        ends = ", ".join(
            f"{tally.statuses[status]} {status.lower()}"
            for status in ("Completed", "Stopped", "Diverged")
            if tally.statuses[status]
        )
        trials = Text(f"{tally.ended:,} of {self._trials:,} ended" + (f": {ends}" if ends else ""))
        if failed := tally.statuses["Failed"]:
            trials.append(f", {failed:,} failed", style="red")
        gangs = (
            (state.gangs_busy, "busy"),
            (state.gangs_idle, "idle"),
            (state.gangs_starting, "starting"),
        )
        return [
            *self._best(tally),
            self._row("trials", trials),
            self._row("units", bar + f" {trained:,} of {resource:,} ({trained / resource:.0%})"),
            self._row("gangs", Text(", ".join(f"{number} {phase}" for number, phase in gangs if number) or "none")),
            self._row("billed", Text(billed(state, self._width - INDENT))),
            self._row("left", Text(self._left_or_stop(state))),
        ]

    def _best(self, tally: Tally) -> list[Text]:
        best = tally.best
        if best is None:
            return [self._row("best", Text("no trial has reported yet", style="dim"))]
        after = tally.ranking.counts(best.resource, best.best_resource)
        words = Text.assemble((tally.best_text, "bold"), f" after {count(after, 'unit')}", (f", {best.id}", "dim"))
        values = [f"{name}={short(value)}" for name, value in best.hyperparameters.items()]
        lines = packed(values, self._width - INDENT)
        if len(lines) > 2:
            lines = [lines[0], lines[1].removesuffix(",") + " ..."]
        return [self._row("best", words), *(self._row("", Text(line)) for line in lines)]

    def _left_or_stop(self, state: JobState) -> str:
        again = "; Ctrl-C again stops now" if state.stopped == INTERRUPTED else ""
        return self.left(state) + again

    def _row(self, heading: str, words: Text) -> Text:
        return Text(f"{heading:<{INDENT}}", style="dim") + words

    def _lines(self, lines: Iterable[Text]) -> Text:
        kept = [shortened(line, self._width) for line in lines]
        joined = Text("\n", end="").join(kept)
        joined.no_wrap = True
        return joined

    @property
    def _width(self) -> int:
        return max(20, min(WIDEST, self._console.width - 1))


def shortened(line: Text, width: int) -> Text:
    """Return a line that fits: one that is longer is cut behind a word, where it has one that is short enough."""
    if line.cell_len <= width:
        return line
    room = len(set_cell_size(line.plain, width - 2).rstrip())
    if line.plain[room : room + 1].strip():  # It is within a word.
        room = line.plain.rfind(" ", 0, room + 1) if " " in line.plain[INDENT:room] else room
    return line[:room].append(" …")


class Marks:
    """Characters of bars.

    Args:
        full: reached, or went on.
        out: stopped.
        empty: still to come.
    """

    def __init__(self, full: str, out: str, empty: str) -> None:
        self.full, self.out, self.empty = full, out, empty

    @classmethod
    def of(cls, console: Console) -> Marks:
        """Blocks where the terminal's encoding has them."""
        return cls("█", "▒", "·") if console.encoding.startswith("utf") else cls("#", "=", ".")

    def bar(self, first: int, second: int, whole: int, width: int) -> Text:
        """A bar of `width` cells: `first` of `whole`, then `second`; what is not nothing has at least a cell."""
        cells = [min(width, max(part > 0, width * part // max(1, whole))) for part in (first, second)]
        if first + second >= whole:
            cells[0 if not second else 1] = width - cells[1 if not second else 0]
        rest = max(0, width - sum(cells))
        return Text.assemble((self.full * cells[0], "green"), (self.out * cells[1], "dim"), (self.empty * rest, "dim"))


def grid(rows: list[tuple[str, Bracket, list[Places]]], width: int, marks: Marks) -> list[Text]:
    """Brackets as lines, a column a rung: how many of its places are reached, or went on (+) and were stopped (-)."""
    rungs = sorted({rung for _, bracket, _ in rows for rung in bracket.rungs})
    words = [[_words(place, last=place is places[-1]) for place in places] for _, _, places in rows]
    widest = max(cell_len(text) for texts in words for text in texts)
    cell = (width - INDENT) // len(rungs)
    bars = min(10, cell - widest - 3)
    shown = rungs if cell > widest else rungs[-max(1, (width - INDENT) // (widest + 1)) :]
    cell = min((width - INDENT) // len(shown), widest + 13)
    head = Text(f"{'rungs':<{INDENT}}" + "".join(f"{rung:<{cell}}" for rung in shown), style="dim")
    lines = [head]
    for (name, bracket, places), texts in zip(rows, words, strict=True):
        line = Text(f"{name:<{INDENT}}", style="dim")
        at = dict(zip(bracket.rungs, zip(places, texts, strict=True), strict=True))
        for rung in shown:
            part = Text()
            if rung in at:
                place, text = at[rung]
                if bars >= 3:
                    done = (place.went_on, place.stopped) if place.decided else (place.reached, 0)
                    part = marks.bar(*done, place.size, bars) + " "
                part.append(text, style="" if place.reached else "dim")
            line.append_text(part)
            line.append(" " * max(1, cell - part.cell_len))
        lines.append(line)
    return lines


def _words(place: Places, last: bool) -> str:
    if place.decided and not last:
        return f"{place.went_on}+ {place.stopped}-"
    return f"{place.reached}/{place.size}"


def billed(state: JobState, width: int) -> str:
    """Worker-seconds so far and what they cost, by kind where there is room."""
    kinds = state.ledger.totals
    open_seconds = state.ledger.open
    total = f"{state.ledger.total + open_seconds:,.0f} worker-seconds"
    if tariff := state.tariff:
        total += f", {tariff.text(state.ledger.total + open_seconds)}"
    parts = [f"{kind.value} {seconds:,.0f}" for kind, seconds in kinds.items() if seconds >= 0.5]
    words = f"{total}: {', '.join(parts)}" if parts else total
    return words if len(words) <= width else total
