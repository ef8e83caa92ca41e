"""The program of a script's gang: each worker starts its part of the user's program, rank 0 follows and decides."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainers import steady
from trainers.channels import FETCH_SECONDS, PlacedChannel
from trainers.checkpoint import UNKNOWN, File, Manifest
from trainers.deletion import delete_scratch
from trainers.details import KNOWN_LENGTH, NO_MODEL
from trainers.errors import CheckpointError, DivergedError, JobError, StorageError, TrialError, UnsavedError, is_away
from trainers.gangs import Assignment, Report, Segment, WorkerContext, never, one_line
from trainers.process import Scratch
from trainers.script.checkpoint_reads import CheckpointReads, CheckpointWrites
from trainers.script.environment import Folders
from trainers.script.folders import (
    folders_of,
    holds_files,
    kept,
    make,
    part_of,
    put_channels,
    restore,
    spread_of,
    unpack,
)
from trainers.script.following import Followed, Follower, Leader, Verdict
from trainers.script.metric_files import MetricFiles, Reported
from trainers.script.metric_lines import ReportsFile
from trainers.script.noted import Noted
from trainers.script.parts import MEET_SECONDS, Parts, ScriptSettings
from trainers.script.peers import Peers
from trainers.script.process import KILL_SECONDS, Guard, ProgramProcess
from trainers.script.standing import Running, Standing
from trainers.script.steps import StepCounter
from trainers.script.units import Units

SHOWN_KILLED = 300
"""Characters of the command lines of processes that had to be killed, in a warning."""
ATTEMPTS = 3
"""Starts of a program whose port another process took first."""


@dataclass(slots=True, kw_only=True)
class _Session:
    """State of an open worker between assignments."""

    context: WorkerContext
    peers: Peers
    guard: Guard
    parts: Parts
    root: Path
    """The folder of this gang on this node."""
    leads: bool
    """Whether this worker is the first one of its node."""
    scratch: Scratch | None
    served: int = 0
    """Starts so far, and assignments without one; each has folders of its own."""
    standing: Standing | None = None
    """The program that stands at its rung, or goes on from there."""


class ScriptProgram:
    """Starts a program anew for each assignment, on workers that stay; see `trainers.gangs.Program`.

    Args:
        channels: each becomes a folder on every node.
        settings: of the program.
    """

    def __init__(self, channels: Mapping[str, PlacedChannel], settings: ScriptSettings) -> None:
        self._channels = dict(channels)
        self._settings = settings
        self._session: _Session | None = None
        self.end_seconds = settings.grace_period_s + KILL_SECONDS
        """See `trainers.gangs.seconds_to_end`."""

    @property
    def output(self) -> str:
        """See `trainers.gangs.output_of`."""
        return "" if self._session is None else self._session.parts.log.place

    def open(self, context: WorkerContext) -> dict[str, float]:
        """Meets the other workers, and lays the channels out, sharded folders on each of them."""
        began = time.perf_counter()
        peers = Peers(context)
        nodes = peers.gathered(f"{context.node_ip} {socket.gethostname()}", MEET_SECONDS, "the node")
        leader = nodes.index(nodes[context.rank])
        joined = time.perf_counter()
        scratch = Scratch("program") if leader == context.rank else None
        root = Path(peers.gathered(scratch.path if scratch else "", MEET_SECONDS, "its folder")[leader])
        channels = put_channels(self._channels.values(), root, context, leads=scratch is not None)
        peers.gathered(None, MEET_SECONDS + FETCH_SECONDS, "the channels")
        guard = Guard()
        self._session = _Session(
            context=context,
            peers=peers,
            guard=guard,
            parts=Parts(
                self._settings,
                context=context,
                peers=peers,
                guard=guard,
                channels=channels,
                distributions=spread_of(self._channels.values()),
                root=root,
            ),
            root=root,
            leads=scratch is not None,
            scratch=scratch,
        )
        return {"join": joined - began, "load": time.perf_counter() - joined}

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        """Runs the program from the assignment's checkpoint to its rung; see `Program.train`."""
        arrived = time.perf_counter()
        session = self._opened()
        noted = self._stood_at(assignment)
        if session.standing is not None:
            folders = session.standing.running.folders
        else:
            session.served += 1
            folders = folders_of(session.root / f"trial-{session.served}", session.context.rank)
        try:
            noted = noted or self._restored(assignment, folders)
            # An assignment before said so, if the trial does not go on from where its program stands.
            lacked = assignment.start > 0 and session.standing is None and not holds_files(Path(folders.model))
            read = time.perf_counter()
            first_step_at = steady.now()
            followed = self._run(assignment, folders, noted, on_report, halted)
            trained = time.perf_counter()
            reached = followed.reports[-1].step if followed.reports else 0
            checkpoint = assignment.saved_at(session.peers.gathered(reached, MEET_SECONDS, "its last unit")[0])
            noted = Noted(
                ended=followed.ended,
                last=followed.reports[-1].metrics if followed.reports else {},
                ahead=tuple(followed.ahead),
                hyperparameters=assignment.hyperparameters,
                past=followed.past,
            )
            if session.context.rank == 0:
                empty = not holds_files(Path(folders.model))
                if (empty and not assignment.goes_on) or (lacked and not empty):
                    known = self._settings.length.of(assignment.hyperparameters) is not None
                    followed.details[NO_MODEL] = KNOWN_LENGTH if empty and known else empty
            manifest = self._saved(checkpoint, folders, noted)
            if session.standing is not None:
                session.standing.wait(assignment, checkpoint, noted)
            return Segment(
                reports=tuple(followed.reports),
                checkpoint=checkpoint,
                manifest=manifest,
                training_seconds=trained - read,
                checkpointing_seconds=read - arrived + time.perf_counter() - trained,
                first_step_at=first_step_at,
                details=followed.details,
            )
        except BaseException:
            self._end_standing()
            raise
        finally:
            if session.leads and session.standing is None:
                delete_scratch(Path(folders.code).parent)

    def close(self) -> None:
        """Leaves the peers; the folders of this node go."""
        session = self._opened()
        self._end_standing()
        session.parts.close()
        session.guard.close()
        session.peers.close()
        if session.scratch is not None:
            session.scratch.close()
        self._session = None

    def _stood_at(self, assignment: Assignment) -> Noted | None:
        """What is known of a trial whose program stands where an assignment begins; one that stands elsewhere is ended.

        Returns:
            On all ranks alike, None where the program is to be started.
        """
        session, seconds = self._opened(), self._settings.grace_period_s + MEET_SECONDS
        standing = session.standing
        mine = None if standing is None else (standing.fits(assignment), standing.noted)
        said = session.peers.gathered(mine, seconds, "what it stands at")
        if all(each is not None and each[0] for each in said):
            noted: Noted = said[0][1]
            return noted
        self._end_standing()
        if any(said):
            session.peers.gathered(None, seconds, "the end of a program")
        if standing is not None and session.leads:
            delete_scratch(Path(standing.running.folders.code).parent)
        return None

    def _end_standing(self) -> None:
        session = self._opened()
        standing, session.standing = session.standing, None
        if standing is not None:
            standing.end()

    def _restored(self, assignment: Assignment, folders: Folders) -> Noted:
        """Lays out a fresh copy of the code, and what the trial had written before; returns what was noted of it."""
        session, settings = self._opened(), self._settings
        problem: Exception | None = None
        if session.leads:
            try:
                make(folders)
                unpack(settings.source, Path(folders.code))
                if assignment.checkpoint is not None:
                    root = Path(folders.code).parent
                    restore(session.context.storage, assignment.checkpoint, assignment.manifest, root)
            except (CheckpointError, StorageError, OSError) as error:
                problem = error
                if isinstance(error, OSError) and is_away(error):
                    where = f"the program's folders, {session.root} on {socket.gethostname()}"
                    problem = StorageError(
                        f"{where}: {error.strerror}; make room there, or let TMPDIR name another disk"
                    )
        for other in session.peers.gathered(problem, MEET_SECONDS, "the checkpoint"):
            if other is not None:
                raise other
        make(folders)
        return Noted.read(Path(folders.code).parent)

    def _run(
        self,
        assignment: Assignment,
        folders: Folders,
        noted: Noted,
        on_report: Callable[[Report], None],
        halted: Callable[[], bool],
    ) -> Followed:
        """Runs the program; once more where a port was taken that was free.

        Raises:
            TrialError, DivergedError, JobError, StorageError: as rank 0 decides, on all ranks.
        """
        known = noted.known(assignment)
        for report in known:
            on_report(report)
            if said := assignment.divergence(report):
                raise DivergedError(said)
        ahead = [report for report in noted.ahead if report.step > assignment.stop]
        # One that is ahead of its trial's last unit has still to end: it may save a model.
        to_end = not noted.ended and (assignment.final or self._opened().standing is not None)
        if known and known[-1].step == assignment.stop and (assignment.goes_on or not to_end):
            return Followed(reports=known, ahead=ahead, ended=noted.ended, past=noted.past)
        last = known[-1] if known else noted.had(assignment)
        for attempt in range(ATTEMPTS):
            followed, verdict = self._run_once(assignment, folders, noted, last, ahead, on_report, halted)
            if not verdict.again or attempt == ATTEMPTS - 1:
                break
        if verdict.error:
            if verdict.away or verdict.of_job:
                raise (StorageError if verdict.away else JobError)(verdict.error)
            raise (DivergedError if verdict.diverged else TrialError)(verdict.error, logs=verdict.logs)
        followed.reports[:0] = known
        if verdict.ended and self._opened().context.rank == 0:
            _fill(assignment, followed, last, on_report)
        return followed

    def _run_once(
        self,
        assignment: Assignment,
        folders: Folders,
        noted: Noted,
        last: Report | None,
        ahead: list[Report],
        on_report: Callable[[Report], None],
        halted: Callable[[], bool],
    ) -> tuple[Followed, Verdict]:
        session, grace = self._opened(), self._settings.grace_period_s
        peers, checkpoints = session.peers, Path(folders.checkpoint)
        followed, verdict = Followed(), Verdict()
        running = self._running(assignment, folders, noted, last)
        part = running.part
        leader: Leader | None = None
        try:
            if any(part.problems):
                verdict = _unstarted(part.problems)
            elif session.context.rank == 0:
                leader = self._leader(assignment, running, last, on_report, halted)
                followed = leader.followed
                followed.ahead += ahead
                verdict = _led(leader)
                peers.say(verdict)
            else:
                verdict = Follower(
                    peers, part.process, checkpoints, grace, part.printing.unread, session.parts.log.place
                ).verdict()
        finally:
            if part.process is not None:
                followed.details |= {} if verdict.error else part.process.details
            self._left(running, holds=verdict.holds)
            if isinstance(part.process, ProgramProcess) and (killed := part.process.killed):
                followed.warn(
                    "killed",
                    f"processes of the program had not ended {grace:g} s after SIGTERM, and were killed: "
                    f"{', '.join(sorted(set(killed)))[:SHOWN_KILLED]}; let them end, or give a smaller grace_period_s",
                )
        if leader is not None:
            leader.take_rest()
        followed.past = running.units.past(running.writes.units(running.units.times.unit_at))
        # One part may end later than another by the grace period, and all have to say alike what came of the program.
        peers.gathered(None, grace + MEET_SECONDS, "the end of its program")
        return followed, verdict

    def _running(self, assignment: Assignment, folders: Folders, noted: Noted, last: Report | None) -> Running:
        """The program that goes on, or is started now."""
        session = self._opened()
        if session.standing is not None:
            session.standing.go_on()
            return session.standing.running
        reached = max(assignment.start, last.step if last else 0)
        settings, past = self._settings, noted.past_of(assignment)
        resumed = any(session.peers.gathered(holds_files(Path(folders.checkpoint)), MEET_SECONDS, "its checkpoint"))
        watches = resumed and session.context.rank == 0
        globs = settings.metric_files if session.context.rank == 0 else ()
        key = "" if settings.steps == StepCounter() else settings.steps.key
        # Files that are there by now are of the program's earlier starts.
        files = MetricFiles(globs, folders, settings.working_dir, objective=assignment.objective, key=key)
        reads = CheckpointReads(Path(folders.checkpoint), files.paths) if watches else None
        units = Units(
            assignment.objective,
            reached,
            resumed=resumed,
            steps=settings.steps,
            past=past,
            last=last.metrics if last else None,
            read=reads.found if reads else lambda: None,
            kept=settings.keep_loaded,
        )
        return Running(
            part=session.parts.begin(assignment, folders, reached if resumed else 0, past.first_step),
            folders=folders,
            units=units,
            reports_file=Reported(ReportsFile(Path(folders.reports), settings.steps.key), files),
            writes=CheckpointWrites(Path(folders.checkpoint), past.files),
            reads=reads,
        )

    def _left(self, running: Running, *, holds: bool) -> None:
        """The program has come to its rung or its end: it stands there, or is ended."""
        session, process = self._opened(), running.part.process
        if running.reads is not None:
            running.reads.close()
        if holds:
            if isinstance(process, ProgramProcess):
                process.hold()
            session.standing = session.standing or Standing(running, self._settings.grace_period_s)
        elif session.standing is not None:
            self._end_standing()
        elif process is not None:
            process.end(self._settings.grace_period_s)

    def _leader(
        self,
        assignment: Assignment,
        running: Running,
        last: Report | None,
        on_report: Callable[[Report], None],
        halted: Callable[[], bool],
    ) -> Leader:
        settings, part = self._settings, running.part
        assert part.process is not None, "every launcher starts something on worker 0"
        return Leader(
            assignment,
            name=settings.entry_point,
            process=part.process,
            peers=self._opened().peers,
            units=running.units,
            last=last,
            reports_file=running.reports_file,
            checkpoints=Path(running.folders.checkpoint),
            writes=running.writes,
            awaited=[rank for rank, role in enumerate(part.roles) if role not in ("server", "none")],
            whole=settings.length.of(assignment.hyperparameters),
            timeout=settings.report_timeout_s,
            grace=settings.grace_period_s,
            printing=part.printing,
            on_report=on_report,
            halted=halted,
        )

    def _saved(self, checkpoint: str, folders: Folders, noted: Noted) -> Manifest:
        """Writes what is kept: a part of each node, and rank 0's manifest.

        Raises:
            UnsavedError: on rank 0, if a part cannot be written.
        """
        session = self._opened()
        rank, storage = session.context.rank, session.context.storage
        notes = noted.to_bytes()
        outcome: File | str | None = None
        if session.leads:
            try:
                outcome = storage.write_part(checkpoint, part_of(rank), kept(folders, None if rank else notes))
            except (StorageError, OSError) as error:
                outcome = f"the program's files cannot be kept: {error}" if isinstance(error, OSError) else str(error)
        parts = session.peers.gathered(outcome, MEET_SECONDS, "its checkpoint")
        if rank:
            return UNKNOWN
        for part in parts:
            if isinstance(part, str):
                raise UnsavedError(part)
        return storage.seal(checkpoint, [part for part in parts if isinstance(part, File)])

    def _opened(self) -> _Session:
        assert self._session is not None, "a gang opens its program before it serves"
        return self._session


def _led(leader: Leader) -> Verdict:
    """Its verdict, which all ranks have to hear, also where a file cannot be read."""
    try:
        return leader.verdict()
    except OSError as error:
        return Verdict(error=one_line(error), away=is_away(error))


def _unstarted(problems: Sequence[Exception | None]) -> Verdict:
    rank, problem = next((rank, each) for rank, each in enumerate(problems) if each is not None)
    on = f"worker {rank}: " if len(problems) > 1 else ""
    return Verdict(error=f"{on}{problem}", away=is_away(problem))


def _fill(assignment: Assignment, followed: Followed, last: Report | None, on_report: Callable[[Report], None]) -> None:
    """Of a program that ended early, the last values count for the rest."""
    last = followed.reports[-1] if followed.reports else last
    assert last is not None, "one that ends without a report has failed"
    for step in range(last.step + 1, assignment.stop + 1):
        followed.reports.append(replace(last, step=step))
        on_report(followed.reports[-1])
