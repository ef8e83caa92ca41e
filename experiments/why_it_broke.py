"""Causes of worse convergence on several workers: found by experiment, one change at a time.

    python -m experiments.why_it_broke image [--quick] [--seeds 3] [--out DIR]
    python -m experiments.why_it_broke xgboost [--anyway]
    python -m experiments.why_it_broke JOB.yaml [--epochs N] [--real] [--allow-code]

`image` is the network of `experiments.mnist` on four asynchronous workers, `xgboost` the blog's job on three; of a job
file it takes the trainer with its static hyperparameters. The run and its twin are trained with several seeds. If the
twin is better by more than the noise, one thing after another is brought back to what it is on one worker, everything
else as it was: the effective batch, the learning rate against the batch, staleness, the momentum that comes with it,
the order of rows that shards are cut from, the rows that each worker's metrics are of, the bandwidth of a server's
link, and the noise of gradients. Each says how much of the gap it gives back, and so which of five published theories
of such a loss holds here. Where single changes do not add up, others are tried on top of the best one. Out of what
helped come ranges to tune.

Workers of PyTorch functions are simulated in this process, on a clock of their own, so that the same seed gives the
same answer; `--real` trains on Ray's workers, as XGBoost always does.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from experiments.convergence.cases import DISTRIBUTED, Case, Outcome, image_case, job_case, xgboost_case
from experiments.convergence.causes import Cause
from experiments.convergence.diagnosis import Diagnosis, percent
from experiments.convergence.effects import Share
from experiments.convergence.experiment import Experiment
from experiments.convergence.verdicts import judgements
from experiments.shared.benchmark import markdown
from experiments.shared.published import SEED, Address, DataDir, Options, Quick, Repeat, Seed, Steps, finish
from hpo.cli import AllowCode, errors_in_words
from hpo.report import with_error

EPOCHS, QUICK_EPOCHS, ROUNDS = 5, 40, 150


def case_of(model: str, options: Options, epochs: int | None, *, real: bool, allow_code: bool = False) -> Case:
    """The case that a name or a job file stands for.

    Raises:
        ConfigurationError: it stands for none.
    """
    if model == "image":
        return image_case(options, epochs or (QUICK_EPOCHS if options.quick else EPOCHS), real=real)
    if model == "xgboost":
        return xgboost_case(options, epochs or ROUNDS)
    return job_case(Path(model), options, epochs, real=real, allow_code=allow_code)


def show(diagnosis: Diagnosis) -> Table:
    """What was found, for a terminal."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("changed back", "to", diagnosis.metric, "gives back", "theory"):
        shown.add_column(column)
    shown.add_row("as on one worker", "", diagnosis.gap.alone.text, "", "")
    for finding in [*diagnosis.findings, *([diagnosis.pair] if diagnosis.pair else [])]:
        change = finding.change
        shown.add_row(change.name, change.said, finding.scores.text, percent(finding.share), change.theories)
    shown.add_row("nothing", "", diagnosis.gap.distributed.text, "", "")
    return shown


def theories(diagnosis: Diagnosis) -> Table:
    """What is known of the published theories, for a terminal."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("theory", "", "why"):
        shown.add_column(column)
    for judgement in judgements(diagnosis):
        shown.add_row(judgement.theory, judgement.verdict, judgement.why)
    return shown


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of a document, from what result.json holds.

    Args:
        result: that of `main`.

    Returns:
        As markdown by name: "verdict", "theories", "causes" where something was changed back, "noise" where it was
        measured, and "link", a line, where a limited one was compared with one without a limit.
    """
    tables = {
        "verdict": str(result["verdict"]),
        "theories": markdown(
            ["theory", "what it says", "here", "why", "source"],
            [
                [str(of[column]) for column in ("theory", "claim", "verdict", "why", "source")]
                for of in result["theories"]
            ],
        ),
    }
    if result["findings"]:
        tables["causes"] = markdown(
            ["changed back to what it is on one worker", "to", "theory", str(result["metric"]), "gives back"],
            _causes(result),
        )
    if result["noise_scale"]:
        tables["noise"] = markdown(
            [
                "trained",
                "rows under way",
                f"noise scale in the first {result['unit']}, rows",
                "in the last",
                "noise of a batch in the last, times the squared gradient",
            ],
            [
                [name, f"{of['rows']:,}", *map(_counted, (of["scale"][0], of["scale"][-1], of["noise_against_signal"]))]
                for name, of in result["noise_scale"].items()
            ],
        )
    if Cause.CONGESTION in result["outcomes"]:
        tables["link"] = _link(result["outcomes"])
    return tables


def _link(outcomes: Mapping[str, Any]) -> str:
    """How late pushes were, in time and in updates, with a limited link and without a limit."""
    limited, free = ([Outcome(**of) for of in outcomes[name]] for name in (DISTRIBUTED, Cause.CONGESTION))
    seconds = sum(outcome.link_seconds for outcome in limited) / max(1, sum(outcome.pushes for outcome in limited))
    old, old_without = (statistics.fmean(outcome.stale for outcome in each) for each in (limited, free))
    return (
        f"a push and its answer were {1000 * seconds:.1f} ms on the link together, and a push was {old:.2f} updates "
        f"old; without a limit, {old_without:.2f}"
    )


def _causes(result: Mapping[str, Any]) -> list[list[str]]:
    """The rows of the table of causes."""
    rows = [["everything: one worker", "", "", _score(result["one_worker"]), ""]]
    for finding in [*result["findings"], *([result["pair"]] if result["pair"] else [])]:
        back = Share(value=finding["share"]["value"], error=finding["share"]["standard_error"])
        theories = ", ".join(theory for theory in finding["theories"] if theory)
        rows.append([" and ".join(finding["causes"]), finding["changed"], theories, _score(finding), percent(back)])
    return [*rows, ["nothing: as distributed", "", "", _score(result["distributed"]), ""]]


def _score(scores: Mapping[str, Any]) -> str:
    return with_error(scores["mean"], scores["standard_error"], 4)


def _counted(value: float | None) -> str:
    """A figure that spans magnitudes; where there was none, the gradient was lost in its noise."""
    if value is None:
        return "no gradient left"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def main(
    model: Annotated[str, typer.Argument(help="image, xgboost, or a job file.")],
    quick: Quick = False,
    data_dir: DataDir = None,
    seed: Seed = SEED,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds; one says nothing of the noise.")] = 3,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs or rounds of each training.")] = None,
    repeat: Repeat = 1,
    real: Annotated[bool, typer.Option("--real", help="Train on Ray's workers, not on simulated ones.")] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Change things though there is no gap.")] = False,
    allow_code: AllowCode = False,
    out: Annotated[Path | None, typer.Option(help="Folder for result.json, the page and the pictures.")] = None,
    address: Address = None,
) -> None:
    """Find out why a distributed run converges worse than one worker."""
    # Imported here: drawing libraries take a while to come.
    from experiments.convergence.page import page

    logging.getLogger("ray.train").setLevel(logging.WARNING)  # It says for each training that it runs in this process.
    console = Console(highlight=False)
    options = Options(
        quick=quick,
        data_dir=data_dir,
        seed=seed,
        seeds=seeds,
        repeat=repeat,
        out=out or Path("results/why_it_broke") / Path(model).stem,
        address=address,
    )
    case = case_of(model, options, epochs, real=real, allow_code=allow_code)
    console.print(f"{case.title}: {case.run.workers} workers against one, {case.metric}")
    with (
        Steps(options.out, console.print) as steps,
        nullcontext() if case.simulated else options.cluster(case.run.workers, steps, console.print),
    ):
        experiment = Experiment(
            case=case, seeds=options.each_seed, steps=steps, folder=options.out.absolute() / "models", say=console.print
        )
        diagnosis = experiment.run(anyway=anyway)
    console.print(f"\n[bold]{diagnosis.verdict}[/]\n")
    if diagnosis.findings:
        console.print(show(diagnosis))
    console.print("", theories(diagnosis))
    outcomes = {name: [asdict(outcome) for outcome in each] for name, each in experiment.outcomes.items()}
    result = {
        "case": case.title,
        "simulated": case.simulated,
        "unit": case.trainer.unit,
        **diagnosis.to_json(),
        "theories": [judgement.to_json() for judgement in judgements(diagnosis)],
        "noise_scale": {name: scale.to_json() for name, scale in experiment.noise_scales.items()},
        "outcomes": outcomes,
    }
    finish(options, result, page(experiment, diagnosis), console)


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
