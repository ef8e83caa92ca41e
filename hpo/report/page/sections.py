"""Sections of a job's page, in reading order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpo.record import is_training, repeats_of
from hpo.report.data import JobData
from hpo.report.figures import job_figures
from hpo.report.page.blocks import Code, Column, Measured, Table, Text
from hpo.report.page.communication import communication_tables
from hpo.report.page.conclusion import subtitle, verdict
from hpo.report.page.origin import origin
from hpo.report.page.page import Block, Page, Section
from hpo.report.page.result import configuration, result
from hpo.report.page.spending import spending
from hpo.report.page.training import (
    training_configuration,
    training_result,
    training_subtitle,
    training_verdict,
)
from hpo.report.pictures import Figure
from hpo.text import first_line, places
from trainers.details import NO_MODEL

FIGURES = {
    "Learning": ("learning-curves", "brackets"),
    "Parents and forks": ("lineage",),
    "Cost": ("cost", "progress"),
    "Hyperparameters": ("importance", "parallel-coordinates"),
    "Model": ("suggestions", "slices", "contours", "predictions"),
    "Communication": ("communication",),
    "Staleness": ("staleness",),
}
"""In which section a picture stands, by its name."""

NOTES = {
    "Model": "The Gaussian process of a search with a model: what it expected as it suggested trials, where that is "
    "in the record, and what it expects afterwards, with all results. It learns ranks; these come back to values by "
    "the quantiles of what the job has seen, so that no line goes beyond the best and the worst of that."
}
"""What has to be known to read the pictures of a section."""

OPENED_FAILURES = 50
"""Failures whose tracebacks a page holds."""


def job_page(data: JobData) -> Page:
    """The page of one job, whatever has become of it."""
    if is_training(data.job):
        return Page(data.title, training_verdict(data), job_sections(data), subtitle=training_subtitle(data))
    return Page(data.title, verdict(data), job_sections(data), subtitle=subtitle(data))


def job_sections(data: JobData) -> list[Section]:
    """A job's parts without its verdict; a page may hold those of several jobs. Empty ones are left out."""
    if is_training(data.job):
        pictures = _pictures(data, job_figures(data))
        trained = (training_result(data), *pictures, training_configuration(data), _failures(data), origin(data))
        return [part for part in trained if part.blocks]
    parts = [result(data), *_pictures(data, job_figures(data)), configuration(data), _autotune(data), _trials(data)]
    return [part for part in (*parts, _failures(data), origin(data)) if part.blocks]


def _pictures(data: JobData, figures: Sequence[Figure]) -> Iterator[Section]:
    """The pictures in their sections; beside those of cost, what they draw."""
    by_name = {figure.name: figure for figure in figures}
    known = {name for names in FIGURES.values() for name in names}
    own = {figure.title: (figure.name,) for figure in figures if figure.name not in known}
    tables = {"Cost": spending, "Communication": communication_tables}
    for title, names in {**FIGURES, **own}.items():
        blocks: list[Block] = [by_name[name] for name in names if name in by_name]
        blocks += tables[title](data) if title in tables else []
        yield Section(title, blocks, note=NOTES.get(title, ""))


def _autotune(data: JobData) -> Section:
    """What autotune chose, and why."""
    chosen = [[each["name"], each["chosen"], each["why"]] for each in data.job.spec.get("autotune") or ()]
    note = "What was left to autotune, chosen before the job began; all else is as it was asked for."
    return Section("Autotune", [Table(["", "chosen", "why"], chosen)] if chosen else [], note=note)


def _trials(data: JobData) -> Section:
    """A row a trial, the best first."""
    names = list(dict.fromkeys(name for trial in data.trials for name in trial.hyperparameters))
    scores = [score for trial in data.trials if (score := data.objective(trial)) is not None]
    columns: list[Column | str] = ["trial", Column("status", choose=True), Column(data.metric, places(*scores))]
    given, forked = any(trial.given for trial in data.trials), any(trial.parent for trial in data.trials)
    columns += [Column(f"mean of {repeats_of(data.job)}", places(*scores))] if data.means else []
    bracketed = any(trial.bracket is not None for trial in data.trials)
    columns += [f"{data.unit}s", *(["began from"] if forked else []), *(["bracket"] if bracketed else [])]
    columns += [Column("worker-seconds", 2)]
    stopped = any(trial.stopped for trial in data.trials)
    lacking = any(trial.details.get(NO_MODEL) for trial in data.trials)
    columns += [*(["model"] if lacking else []), *(["given"] if given else [])]
    columns += [*(["stopped by"] if stopped else []), *names]
    rows = [
        [
            trial.trial_id,
            trial.status,
            data.objective(trial),
            *([Measured(data.means[trial.number], data.mean_error(trial))] if data.means else []),
            trial.resource,
            *([trial.origin or None] if forked else []),
            *([None if trial.bracket is None else trial.bracket + 1] if bracketed else []),
            data.billed_by_trial.get(trial.trial_id, 0.0),
            *(["none" if trial.details.get(NO_MODEL) else None] if lacking else []),
            *([trial.given_as] if given else []),
            *([trial.stopped_by or None] if stopped else []),
            *(trial.hyperparameters.get(name) for name in names),
        ]
        for trial in data.ranked()
    ]
    return Section(
        "Trials", [Table(columns, rows)] if rows else [], note="The best first. A heading sorts by its column."
    )


def _failures(data: JobData) -> Section:
    """Why trials failed or diverged, and where."""
    untuned = () if data.untuned is None else (data.untuned,)
    failed = [trial for trial in (*untuned, *data.trials) if trial.status in ("Failed", "Diverged")]
    blocks: list[Block] = []
    for trial in failed[:OPENED_FAILURES]:
        parts = [trial.failure_reason, trial.traceback.rstrip(), f"Logs: {trial.logs}" if trial.logs else ""]
        caption = f"{trial.trial_id} {trial.status.lower()}: {first_line(trial.failure_reason)}"
        blocks.append(Code("\n\n".join(part for part in parts if part), caption=caption, folded=True))
    if more := failed[OPENED_FAILURES:]:
        blocks.append(Text(f"And {len(more)} more: hpo trials {data.title} --tracebacks shows them."))
    return Section("Failures", blocks)
