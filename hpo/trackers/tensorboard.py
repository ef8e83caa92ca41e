"""TensorBoard: a folder for each trial, with its metrics and hyperparameters, by TensorBoard's own writer."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from hpo.observers import JobEnd, JobStart, TrialInfo
from hpo.record import encode
from hpo.trackers.tracker import Finished, Log, Reported, Tracker, job_numbers, trial_numbers
from trainers.errors import ConfigurationError


class TensorBoard(Tracker):
    """Logs to event files: FOLDER/JOB/TRIAL for each trial, and FOLDER/JOB for the job itself.

    Args:
        folder: a local folder; `tensorboard --logdir FOLDER` shows it.

    Raises:
        ConfigurationError: tensorboard is not installed, or `folder` is not a local one.
    """

    name = "TensorBoard"
    package = "tensorboard"

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        if "://" in str(folder):
            raise ConfigurationError(f"TensorBoard's folder is {str(folder)!r}; give a local one")
        self.folder = Path(folder).absolute()  # Wherever the process goes later.

    def __repr__(self) -> str:
        return f"TensorBoard({str(self.folder)!r})"

    def open(self, job: JobStart) -> Log:
        """See `Tracker`."""
        return _EventFiles(self.folder / job.name, job)


class _EventFiles:
    """A job's folder. A file is open only while something is added: trials wait, and there are many."""

    def __init__(self, folder: Path, job: JobStart) -> None:
        if folder.exists():
            raise FileExistsError(f"{folder} is there already; remove it, or give TensorBoard another folder")
        self._folder, self._job = folder, job
        self._files: dict[str, Path] = {}
        about = {"metric": job.metric, "seed": job.seed, "static": job.hyperparameters, "ranges": job.ranges}
        self._add("", [_event([_text("job", about)], 0, time.time())])

    def reports(self, trial: TrialInfo, reports: Sequence[Reported]) -> None:
        self._begin(trial, reports[0].at)
        self._add(trial.id, [_event(_scalars(each.report.metrics), each.report.step, each.at) for each in reports])

    def trial_end(self, trial: TrialInfo, finished: Finished) -> None:
        end = finished.end
        self._begin(trial, finished.at)
        about = {"status": end.status, **({"failure": end.failure} if end.failure else {})}
        numbers = {f"trial/{name}": value for name, value in trial_numbers(end).items()}
        summaries = [*_scalars(numbers), _text("trial/end", about), _session_end(finished)]
        self._add(trial.id, [_event(summaries, end.resource, finished.at)])

    def job_end(self, job: JobEnd) -> None:
        numbers = {f"job/{name}": value for name, value in job_numbers(job).items()}
        about = {"status": job.status, "reason": job.reason, "summary": job.summary}
        self._add("", [_event([*_scalars(numbers), _text("job/end", about)], 0, time.time())])

    def _begin(self, trial: TrialInfo, at: float) -> None:
        """Hyperparameters come first, once a trial."""
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb

        if trial.id not in self._files:
            values = {**self._job.hyperparameters, **trial.hyperparameters}
            shown = {name: _hyperparameter(value) for name, value in values.items()}
            self._add(trial.id, [_event([hparams_pb(shown, trial_id=trial.id, start_time_secs=at)], 0, at)])

    def _add(self, name: str, events: list[Any]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        if name not in self._files:
            folder, at = self._folder / name, events[0].wall_time
            folder.mkdir(parents=True)
            self._files[name] = folder / f"events.out.tfevents.{int(at)}.{socket.gethostname()}.{os.getpid()}"
            events = [Event(wall_time=at, file_version="brain.Event:2"), *events]
        with self._files[name].open("ab") as stream:
            writer = RecordWriter(stream)
            for event in events:
                writer.write(event.SerializeToString())


def _event(summaries: Iterable[Any], step: int, at: float) -> Any:
    """Summaries of one step as one event."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    return Event(wall_time=at, step=step, summary=Summary(value=[value for each in summaries for value in each.value]))


def _scalars(values: Mapping[str, Any]) -> list[Any]:
    """Numbers as summaries. TensorBoard keeps 7 digits, and NaN and infinities as they are."""
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb

    return [scalar_pb(name, float(value)) for name, value in values.items() if isinstance(value, Real)]


def _text(tag: str, about: Mapping[str, Any]) -> Any:
    """Values that are no numbers, as a block of JSON."""
    from tensorboard.plugins.text.summary_v2 import text_pb

    lines = json.dumps(encode(about), indent=1, ensure_ascii=False).splitlines()
    return text_pb(tag, "\n".join(f"    {line}" for line in lines))  # Indented: Markdown's way of leaving text alone.


def _session_end(finished: Finished) -> Any:
    """How a trial ended, for the dashboard of hyperparameters: TensorBoard's own function for it needs TensorFlow."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import metadata
    from tensorboard.plugins.hparams.api_pb2 import Status
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo

    failed = finished.end.status in ("Failed", "Diverged")
    status = Status.Value("STATUS_FAILURE" if failed else "STATUS_SUCCESS")
    data = HParamsPluginData(session_end_info=SessionEndInfo(status=status, end_time_secs=finished.at))
    content = metadata.create_summary_metadata(data)
    value = Summary.Value(tag=metadata.SESSION_END_INFO_TAG, metadata=content, tensor=metadata.NULL_TENSOR)
    return Summary(value=[value])


def _hyperparameter(value: Any) -> bool | float | str:
    """A value as TensorBoard takes it: booleans, numbers and text; of anything else its JSON."""
    return value if isinstance(value, bool | int | float | str) else json.dumps(encode(value))
