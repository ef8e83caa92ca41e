"""Why a distributed run converges worse than its one-worker twin: found by experiment, one change at a time.

    python -m experiments.why_it_broke image [--quick] [--seeds 3] [--out DIR]
    python -m experiments.why_it_broke xgboost [--anyway]
    python -m experiments.why_it_broke JOB.yaml [--epochs N] [--real] [--allow-code]

`image` is the network of `experiments.mnist` on four asynchronous workers, `xgboost` the blog's job on three; of a job
file it takes the trainer with its static hyperparameters. The run and its twin are trained with several seeds. If the
twin is better by more than the noise, one thing after another is brought back to what it is on one worker, everything
else as it was: the effective batch, the learning rate against the batch, staleness, the momentum that comes with it,
the order of rows that shards are cut from, and the rows that each worker's metrics are of. Each says how much of the
gap it gives back. Where single changes do not add up, others are tried on top of the best one. Out of what helped come
ranges to tune.

Workers of PyTorch functions are simulated in this process, on a clock of their own, so that the same seed gives the
same answer; `--real` trains on Ray's workers, as XGBoost always does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from experiments.causes import Change, changes
from experiments.diagnosis import Diagnosis, diagnose, pairs_of, percent, said
from experiments.gap import Gap, Scores
from experiments.published import SEED, Address, DataDir, Options, Quick, Repeat, Seed, Steps, finish
from experiments.twins import Case, Outcome, image_case, job_case, measure, scored, xgboost_case
from hpo.cli.options import AllowCode
from trainers import ConfigurationError

ALONE, DISTRIBUTED = "one worker", "distributed"
EPOCHS, QUICK_EPOCHS, ROUNDS = 5, 40, 150


@dataclass(kw_only=True)
class Experiment:
    """The trainings of one case, each done once.

    Args:
        case: what is looked into.
        seeds: each way to train is trained with each of these.
        steps: keeps what was done.
        folder: for models.
        say: is told what is going on.
        outcomes: by name of the way to train, an outcome a seed.
    """

    case: Case
    seeds: Sequence[int]
    steps: Steps
    folder: Path
    say: Callable[[str], None]
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)

    def run(self, *, anyway: bool = False) -> Diagnosis:
        """Trains what there is to train, and says what it means.

        Args:
            anyway: change things one at a time though there is no gap.

        Raises:
            ConfigurationError: one worker diverges too, so that there is nothing to come back to.
        """
        run, metric = self.case.run, self.case.metric
        self._train(ALONE, None)
        if all(outcome.diverged for outcome in self.outcomes[ALONE]):
            raise ConfigurationError(
                "one worker diverges with these hyperparameters too, and not for its distribution; give a lower "
                "learning rate"
            )
        self._train(DISTRIBUTED, None)
        made, ruled_out = changes(run)
        if not (self._gap.is_one or (anyway and self._gap.size)):
            return diagnose(run, metric, self._gap, [], [], {})
        for change in made:
            self._train(change.name, change)
        tried = [(change, self.scores(change.name)) for change in made]
        single = diagnose(run, metric, self._gap, tried, [], ruled_out)
        pairs = pairs_of(single) if self._gap.is_one and single.interact else []
        for pair in pairs:
            self._train(pair.name, pair)
        return diagnose(run, metric, self._gap, tried, [(pair, self.scores(pair.name)) for pair in pairs], ruled_out)

    def scores(self, name: str) -> Scores:
        """What one way to train came to, of those that were trained."""
        outcomes = [outcome for each in self.outcomes.values() for outcome in each]
        seen = [value for outcome in outcomes for value in outcome.curve if value == value]
        worst = (min if self.case.maximize else max)(seen, default=0.0)
        values = scored(self.outcomes[name], worst)
        return Scores(values=values.values, row_error=self.case.row_error(values.mean))

    @property
    def _gap(self) -> Gap:
        return Gap(alone=self.scores(ALONE), distributed=self.scores(DISTRIBUTED), maximize=self.case.maximize)

    def _train(self, name: str, change: Change | None) -> None:
        case = self.case
        trainer = case.alone() if name == ALONE else case.distributed(change)
        self.outcomes[name] = []
        for seed in self.seeds:
            settings = {
                "trainer": trainer.to_json(),
                "channels": {channel: source.describe() for channel, source in case.channels.items()},
                "metric": case.metric,
                "seed": seed,
                "shuffled": change is not None and change.shuffled,
                "whole": change is not None and change.whole,
            }

            def work(seed: int = seed) -> dict[str, Any]:
                return asdict(measure(case, trainer, case.rows(change, seed), seed, self.folder))

            kept = self.steps.do(f"{name.replace(' ', '-')}-{seed}", settings, work)
            self.outcomes[name].append(Outcome(**kept))
        seconds = sum(outcome.seconds for outcome in self.outcomes[name])
        self.say(f"{name}: {said(self.scores(name))}, trained in {seconds:.0f} s")


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
    for column in ("changed back", "to", diagnosis.metric, "gives back"):
        shown.add_column(column)
    shown.add_row("as on one worker", "", said(diagnosis.gap.alone), "")
    for finding in [*diagnosis.findings, *([diagnosis.pair] if diagnosis.pair else [])]:
        shown.add_row(finding.change.name, finding.change.said, said(finding.scores), percent(finding.share))
    shown.add_row("nothing", "", said(diagnosis.gap.distributed), "")
    return shown


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
    from experiments.why_page import page

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
    outcomes = {name: [asdict(outcome) for outcome in each] for name, each in experiment.outcomes.items()}
    result = {"case": case.title, "simulated": case.simulated, **diagnosis.to_json(), "outcomes": outcomes}
    finish(options, result, page(experiment, diagnosis), console)


if __name__ == "__main__":
    typer.run(main)
