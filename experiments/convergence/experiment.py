"""The trainings of one case: one worker, the distributed run, and that with one change after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from experiments.convergence.cases import ALONE, DISTRIBUTED, EXACT, Case, Outcome, measure, scored
from experiments.convergence.causes import Cause, Change, changes
from experiments.convergence.diagnosis import Diagnosis, diagnose, pairs_of
from experiments.convergence.effects import Gap
from experiments.convergence.noise_scale import NoiseScale, scales
from experiments.shared.published import Steps
from experiments.shared.scores import Scores
from trainers import ConfigurationError, Trainer, TrialError


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
        made, ruled_out = self._changes()
        exact = self._exact()
        if not (self._gap.is_one or (anyway and self._gap.size)):
            return diagnose(run, metric, self._gap, [], [], ruled_out, exact)
        for change in made:
            self._train(change.name, change)
        tried = [(change, self.scores(change.name)) for change in made]
        single = diagnose(run, metric, self._gap, tried, [], ruled_out)
        pairs = pairs_of(single) if self._gap.is_one and single.interact else []
        for pair in pairs:
            self._train(pair.name, pair)
        doubles = [(pair, self.scores(pair.name)) for pair in pairs]
        return diagnose(run, metric, self._gap, tried, doubles, ruled_out, exact)

    def scores(self, name: str) -> Scores:
        """What one way to train came to, of those that were trained."""
        outcomes = [outcome for each in self.outcomes.values() for outcome in each]
        seen = [value for outcome in outcomes for value in outcome.curve if value == value]
        worst = (min if self.case.maximize else max)(seen, default=0.0)
        values = scored(self.outcomes[name], worst)
        return Scores(values=values.values, row_error=self.case.row_error(values.mean))

    @property
    def noise_scales(self) -> dict[str, NoiseScale]:
        """Those of one worker and of the distributed run, each with the rows that it has under way."""
        batches = self.case.run.batches
        if batches is None:
            return {}
        return scales(
            {name: (self.outcomes[name], rows) for name, rows in zip((ALONE, DISTRIBUTED), batches, strict=True)}
        )

    @property
    def _gap(self) -> Gap:
        return Gap(alone=self.scores(ALONE), distributed=self.scores(DISTRIBUTED), maximize=self.case.maximize)

    def _changes(self) -> tuple[list[Change], dict[Cause, str]]:
        """What there is to change; noise can only be added where it could be measured, too."""
        made, ruled_out = changes(self.case.run)
        if any(outcome.noise for each in self.outcomes.values() for outcome in each):
            return made, ruled_out
        left = [change for change in made if change.noise == 1]
        if len(left) < len(made):
            ruled_out[Cause.NOISE] = (
                "the prepared model is not called once a step for one tensor with a row for each example"
                if self.case.watched
                else "the model is compiled, so that the noise of its gradients is not seen"
            )
        return left, ruled_out

    def _exact(self) -> Scores | None:
        """One worker's scores with exact trees; None where there are none such."""
        trainer = self.case.exact()
        if trainer is None:
            return None
        try:
            self._train(EXACT, None, trainer)
        except TrialError as error:  # Of columns of categories, say.
            del self.outcomes[EXACT]
            self.say(f"{EXACT}: {error}")
            return None
        return self.scores(EXACT)

    def _train(self, name: str, change: Change | None, trainer: Trainer | None = None) -> None:
        case = self.case
        if trainer is None:
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
                "noise": change.noise if change is not None else 1.0,
                "watched": case.watched and name in (ALONE, DISTRIBUTED),
            }

            def work(seed: int = seed) -> dict[str, Any]:
                return asdict(measure(case, trainer, case.rows(change, seed), seed, self.folder))

            kept = self.steps.do(f"{name.replace(' ', '-')}-{seed}", settings, work)
            self.outcomes[name].append(Outcome(**kept))
        seconds = sum(outcome.seconds for outcome in self.outcomes[name])
        self.say(f"{name}: {self.scores(name).text}, trained in {seconds:.0f} s")
