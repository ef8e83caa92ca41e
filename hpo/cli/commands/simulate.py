"""Commands that say what a job would take: a forecast of one, and a replay of its search on recorded curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from hpo.cli.options import AllowCode, AsJson, DataDir, Overrides, StoreUrl, Verbose, overrides

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from hpo.cost import Tariff
    from hpo.jobs import JobSettings
    from hpo.simulation import Row
    from hpo.strategies import Strategy


def forecast(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    data_dir: DataDir = None,
    set_: Overrides = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Say what a job would take, without running it.

    Worker-seconds, wall time and, with prices, money: at most, and as
    expected. The pace comes from the record's earlier jobs of the same
    trainer, workers and data; where there is none, from a few units that
    are trained on a gang started for it. Nothing is recorded.
    """
    from hpo.cli.terminal import show_json, terminal, working
    from hpo.job_file import TrainingSpec, read_any
    from hpo.observers import show_plan, show_training_plan
    from hpo.text import printer
    from hpo.training import TrainingJob
    from hpo.tuner import HyperparameterTuner

    spec = read_any(job, overrides(set_, store=store), allow_code=allow_code)
    out = terminal(stderr=as_json)
    once = isinstance(spec, TrainingSpec)
    make: Any = TrainingJob.of if once else HyperparameterTuner
    tuner = make(**spec.arguments(), console=out, verbose=verbose)
    with working(as_json=as_json):
        outlook = tuner.forecast(spec.channels(data_dir))
    plan = tuner.settings.plan()
    if as_json:
        show_json({"plan": plan.to_json(), "forecast": outlook.to_json()})
        return
    if tuner.settings.autotune:
        printer(out)(str(tuner.settings.autotune))
    out.print(show_training_plan(plan, tuner.settings.estimator.unit) if once else show_plan(plan))
    printer(out)(outlook.text)


def simulate(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    curves: Annotated[
        str,
        typer.Option(metavar="FILE", help="Recorded curves: .csv, .parquet or .npz; job:NAME is a job of the record."),
    ],
    strategy: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="NAME", help="A strategy; may be repeated. The job's own where none is given."),
    ] = None,
    gangs: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="N,...", help="How many gangs train at once; else the job's max_parallel_jobs."),
    ] = None,
    max_jobs: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="N,...", help="Trials in all; else the job's max_jobs."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Searches of each, from the job's random_seed, or 0, on.")] = 10,
    set_: Overrides = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Replay a job's search on recorded curves, without training.

    Regret, wall time and bill of strategies, numbers of gangs and budgets,
    on a simulated clock. A suggestion is mapped to its nearest recorded
    configuration. A model begins with the results of the parents that the
    job's warm_start names. Regret is normalised: 0 is the best value of the
    table, 1 the median final one. Nothing is recorded, and no Ray cluster is
    started.
    """
    from hpo.cli.terminal import show, show_json, working
    from hpo.job_file import read_job
    from hpo.jobs import earlier_of, search_for
    from hpo.simulation import compare, open_curves
    from hpo.tuner import HyperparameterTuner

    spec = read_job(job, overrides(set_, store=store), allow_code=allow_code)
    settings = HyperparameterTuner(**spec.arguments(), console=False).settings
    jobs, at_once = _counts("--max-jobs", max_jobs, settings.max_jobs), _counts("--gangs", gangs, None)
    with working(as_json=as_json):
        table = open_curves(curves, settings.ranges, settings.objective_metric_name, spec.store)
        first = settings.random_seed or 0
        rows = compare(
            table,
            search_for(settings, "simulated", first),
            settings.ranges,
            strategies=_strategies(settings, strategy, allow_code=allow_code),
            units=settings.plan().max_resource,
            gangs=at_once or [settings.max_parallel_jobs],
            max_jobs=jobs,
            seeds=range(first, first + seeds),
            early_stopping_type=settings.early_stopping_type,
            earlier=earlier_of(settings, spec.store),
        )
    notes = [*table.notes, *_notes(settings)]
    if as_json:
        show_json({"rows": [row.to_json(settings.tariff) for row in rows], "notes": notes})
    else:
        show(_table(rows, settings.tariff), *notes)


def _notes(settings: JobSettings) -> Iterator[str]:
    """What a reader of simulated figures has to know of the job."""
    from hpo.strategies import median_rule_warnings

    plan = settings.plan()
    if plan.repeats > 1:
        yield (
            f"Each configuration is trained {plan.repeats} times, and each of its trials goes along the one curve that "
            "is recorded of it: what another seed would change is not simulated."
        )
    if plan.apart:
        if early := " or ".join(map(str, plan.brackets[0].rungs[:-1])):
            yield (
                f"early_stopping_type is Auto: a trial stops at {early} units if it is behind the median of those "
                "before it."
            )
        else:
            yield from median_rule_warnings(plan)


def _counts(option: str, text: str | None, default: int | None) -> list[int]:
    """The numbers of a list with commas."""
    from trainers.errors import ConfigurationError

    if text is None:
        return [] if default is None else [default]
    counts = [int(word) if word.strip().isdecimal() else 0 for word in text.split(",")]
    if min(counts) < 1:
        raise ConfigurationError(f"{option} is {text!r}; give whole numbers, 1 or more, with commas between")
    return counts


def _strategies(settings: JobSettings, names: Sequence[str] | None, *, allow_code: bool) -> dict[str, Strategy]:
    """The strategies that were named, the job's own as it is configured; that alone where none was."""
    from hpo.jobs import NamedCode, check_allowed, look_here_too
    from hpo.strategies import check_known, strategy_code, strategy_of

    found = {}
    for name in names or [settings.strategy_name]:
        check_known(name)
        if name != settings.strategy_name and strategy_code(name, None):
            check_allowed([NamedCode(key="--strategy", name=name)], allow_code, "the command")
            look_here_too()
        found[name] = settings.search_strategy if name == settings.strategy_name else strategy_of(name, None)
    return found


def _table(rows: Sequence[Row], tariff: Tariff | None) -> Table:
    """A line for each strategy, budget and number of gangs: means over the seeds."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), collapse_padding=True)
    table.add_column("strategy", no_wrap=True)
    for name in ("trials", "gangs", "regret", "best", "units", "of all", "wall s", "worker-s"):
        table.add_column(name, justify="right", no_wrap=True)
    if tariff:
        table.add_column("cost", justify="right", no_wrap=True)
    for row in rows:
        worker_seconds, units = row.mean(lambda run: run.worker_seconds), row.mean(lambda run: run.units)
        table.add_row(
            row.strategy,
            str(row.max_jobs),
            str(row.gangs),
            _regret(row.regret),
            f"{row.mean(lambda run: run.best_after(run.units)):.4g}",
            f"{units:,.0f}",
            f"{units / row.most_units:.0%}",
            f"{row.mean(lambda run: run.wall_seconds):,.1f}",
            f"{worker_seconds:,.1f}",
            *([tariff.text(worker_seconds)] if tariff else []),
        )
    return table


def _regret(regret: tuple[float, float] | None) -> str:
    if regret is None:
        return "-"
    mean, error = regret
    return f"{mean:.3f} ± {error:.3f}" if error == error else f"{mean:.3f}"  # A NaN is not itself.
