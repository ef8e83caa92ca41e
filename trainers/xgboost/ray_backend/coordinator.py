"""The coordinator of a gang: a process in its placement group that calls xgboost_ray for each assignment."""

from __future__ import annotations

import gc
import os
import re
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from trainers.channels import PlacedChannel
from trainers.errors import CheckpointError, GangError, TrialError, WarmbandError, is_away
from trainers.gangs import AGREE_SECONDS, Assignment, GangEnded, GangLost, Report, Served, one_line
from trainers.patient_storage import PatientStorage
from trainers.process import end_surely


class Coordinator:
    """Runs in the gang's placement group: calls xgboost_ray for each assignment and says what became of it.

    Args:
        gang: its gang.
        channels: what is read.
        resources: of one training actor.
        ray_params: fields of xgboost_ray's `RayParams`.
    """

    def __init__(
        self,
        gang: str,
        channels: Mapping[str, PlacedChannel],
        resources: Mapping[str, float],
        ray_params: Mapping[str, Any],
    ) -> None:
        end_surely()
        self._gang = gang
        self._workers = channels["train"].num_workers
        self._arguments = (channels, resources, ray_params)
        self._actors: dict[int, Any] = {}
        self._serving = self._halted = ""
        self._training: Any = None

    def open(self) -> tuple[int, dict[str, float]]:
        """Imports xgboost_ray; returns this process's id and the seconds each step took."""
        started = time.perf_counter()
        from trainers.xgboost.ray_backend.training import Training

        place = PatientStorage(given_up=self.halted)
        self._training = Training(*self._arguments, ray.get_runtime_context().current_actor, place)
        return os.getpid(), {"import": time.perf_counter() - started}

    def register(self, rank: int, actor: Any) -> None:
        """A training actor has started."""
        self._actors[rank] = actor

    def news(self, seconds: float) -> tuple[Report, ...]:
        """The reports of the present assignment within `seconds`, which it waits."""
        from trainers.xgboost.ray_backend.training import JOURNAL

        time.sleep(seconds)
        return JOURNAL.news()

    def halt(self, save_to: str) -> None:
        """The assignment that saves there is to end with its next round."""
        self._halted = save_to

    def halted(self) -> bool:
        """Whether what is being served is to end with its next round."""
        return self._serving == self._halted

    def serve(self, assignment: Assignment) -> Served | GangLost | GangEnded:
        """Serves an assignment; nothing of it is left but its checkpoint."""
        self._serving = assignment.save_to
        try:
            segment = self._training.serve(assignment)
            return Served(gang=self._gang, trial_id=assignment.trial_id, segment=segment)
        except Exception as error:
            return self._failed(assignment, error)
        finally:
            for actor in self._actors.values():
                ray.kill(actor)
            self._actors.clear()
            gc.collect()  # xgboost_ray leaves its queue to it where training failed.

    def _failed(self, assignment: Assignment, error: Exception) -> Served | GangLost | GangEnded:
        """Whose fault it was: workers that died, data that no other gang could read either, or the trial itself."""
        chain = list(_causes(error))
        in_actor = next((link for link in chain if isinstance(link, RayTaskError)), None)
        reason, text = _reason(error, in_actor), traceback.format_exc()
        if isinstance(error, GangError):
            return GangLost(gang=self._gang, reason=reason)
        # xgboost_ray says that an actor died whatever happened in one.
        if any(isinstance(link, RayActorError) for link in chain) and (dead := self._dead()):
            return GangLost(gang=self._gang, reason=f"training actors of rank {dead} died")
        if in_actor is not None and isinstance(in_actor.cause, WarmbandError):
            return GangEnded(gang=self._gang, error=reason, traceback=text, final=True)
        from trainers.xgboost.ray_backend.training import JOURNAL

        told = JOURNAL.so_far()
        return Served(
            gang=self._gang,
            trial_id=assignment.trial_id,
            error=reason,
            traceback=text,
            away=is_away(error),
            spoilt=isinstance(error, CheckpointError),
            reports=told,
        )

    def _dead(self) -> list[int]:
        """Ranks of the training actors that never came or do not answer."""
        answers = {rank: actor.pid.remote() for rank, actor in self._actors.items()}
        alive = {rank for rank, answer in answers.items() if _answers(answer)}
        return sorted(set(range(self._workers)) - alive)


def _answers(answer: Any) -> bool:
    try:
        ray.get(answer, timeout=AGREE_SECONDS)
    except (RayActorError, GetTimeoutError):
        return False
    return True


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _reason(error: Exception, in_actor: RayTaskError | None) -> str:
    """The error in a line: XGBoost's own words where there are some, since xgboost_ray drops them."""
    words = re.search(r"^xgboost\.core\.XGBoostError:\s*(.*\S)", str(in_actor or ""), re.MULTILINE)
    if words:
        return f"XGBoostError: {one_line(TrialError(words[1]))}"
    return one_line(error if in_actor is None else in_actor.cause)
