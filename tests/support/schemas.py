"""Records of older versions."""

from __future__ import annotations

import itertools

import sqlalchemy as sa

# What the first version made, and one row of each kind.
VERSION_1 = """
CREATE TABLE jobs (name TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, created_at FLOAT NOT NULL,
    ended_at FLOAT, heartbeat FLOAT NOT NULL, spec JSON NOT NULL, plan JSON NOT NULL, summary JSON NOT NULL,
    PRIMARY KEY (name));
CREATE TABLE trials (job TEXT NOT NULL, trial_id TEXT NOT NULL, number BIGINT NOT NULL, status TEXT NOT NULL,
    hyperparameters JSON NOT NULL, bracket BIGINT, resource BIGINT NOT NULL, objective FLOAT, best_objective FLOAT,
    best_resource BIGINT, checkpoint TEXT NOT NULL, checkpoint_bytes BIGINT NOT NULL, failure_reason TEXT NOT NULL,
    traceback TEXT NOT NULL, attempts BIGINT NOT NULL, started_at FLOAT, ended_at FLOAT, PRIMARY KEY (job, trial_id));
CREATE TABLE reports (job TEXT NOT NULL, trial_id TEXT NOT NULL, step BIGINT NOT NULL, objective FLOAT,
    metrics JSON NOT NULL, at FLOAT NOT NULL, PRIMARY KEY (job, trial_id, step));
CREATE TABLE ledger (job TEXT NOT NULL, trial_id TEXT NOT NULL, gang TEXT NOT NULL, kind TEXT NOT NULL,
    worker_seconds FLOAT NOT NULL, at FLOAT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (job, id));
CREATE TABLE schema_version (version INTEGER NOT NULL, PRIMARY KEY (version));
INSERT INTO schema_version VALUES (1);
INSERT INTO jobs VALUES ('bank', 'Completed', '', 1000.0, 1010.0, 1009.0, '{"max_jobs": 1}', '{}', '{}');
INSERT INTO trials VALUES ('bank', 't0', 0, 'Failed', '{"eta": 0.5}', 2, 3, 0.75, 0.8, 2, 'file:///c', 9, 'boom',
    'Traceback', 1, 1001.0, 1002.0);
INSERT INTO reports VALUES ('bank', 't0', 1, 0.75, '{"auc": 0.75}', 1001.5);
INSERT INTO ledger VALUES ('bank', 't0', 'g0', 'training', 3.0, 1002.0, 'a-1');
"""


# And what the next ones made of it.
VERSION_2 = """
ALTER TABLE trials ADD COLUMN logs TEXT NOT NULL DEFAULT '';
UPDATE schema_version SET version = 2;
"""


VERSION_3 = """
ALTER TABLE trials ADD COLUMN details JSON NOT NULL DEFAULT '{}';
UPDATE schema_version SET version = 3;
"""


VERSION_4 = """
ALTER TABLE ledger ADD COLUMN workers BIGINT NOT NULL DEFAULT 0;
UPDATE schema_version SET version = 4;
"""


VERSION_5 = """
CREATE TABLE warmband_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
INSERT INTO warmband_version VALUES ('0005');
ALTER TABLE jobs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN lease TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN driver JSON NOT NULL DEFAULT '{}';
UPDATE schema_version SET version = 5;
"""


VERSION_6 = """
CREATE TABLE lines (job TEXT NOT NULL, text TEXT NOT NULL, at FLOAT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (job, id));
UPDATE warmband_version SET version_num = '0006';
"""


VERSION_7 = """
ALTER TABLE trials ADD COLUMN files JSON NOT NULL DEFAULT '{}';
UPDATE warmband_version SET version_num = '0007';
"""


VERSION_8 = """
ALTER TABLE trials ADD COLUMN turns JSON NOT NULL DEFAULT '{}';
UPDATE warmband_version SET version_num = '0008';
"""


_STEPS = (VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5, VERSION_6, VERSION_7, VERSION_8)
VERSIONS = list(itertools.accumulate(text.lstrip() for text in _STEPS))


def execute(url: str, *statements: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()
