"""Jobs of programs that save and never read what they saved: what the record says of them."""

from __future__ import annotations

from pathlib import Path

from tests.support.hpo.jobs.program_units import HEAD, definition, true_value
from tests.support.refusals import mentions
from tests.support.script_job import ScriptJob


def test_a_program_that_never_reads_its_checkpoints_has_the_values_of_its_units(tmp_path: Path) -> None:
    source = (
        f"{HEAD}for epoch in range(a.epochs):\n    weight += a.eta * (1 - weight)\n"
        "    print(f'* val_acc {weight:.4f}', flush=True)\n"
        "    json.dump(weight, open(os.path.join(os.environ['SM_CHECKPOINT_DIR'], 'best.json'), 'w'))\n"
        "    time.sleep(1.2)\n"
    )
    job = ScriptJob(
        tmp_path, source, static={"epochs": 4}, trainer=definition(r"val_acc (\S+)"), strategy="Hyperband", max_jobs=3
    )
    trials = job.fit()
    assert {trial.resource for trial in trials} > {4}
    for trial in trials:
        assert trial.objective == true_value(trial, trial.resource)
    mentions(job.printed, "warning", "again", "checkpoint")
