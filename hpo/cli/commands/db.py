"""Commands about the record's database."""

from __future__ import annotations

import typer

from hpo.cli.options import AsJson, Command, Group, StoreUrl

app = typer.Typer(cls=Group, no_args_is_help=True, help="The record's database: bring it up to date, check.")


@app.command("upgrade", cls=Command)
def db_upgrade(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Bring a database that an older Warmband wrote up to this one's schema.

    Take a backup first, and let no job run meanwhile.
    An empty database gets the tables.
    """
    from hpo.cli.terminal import show, show_json
    from hpo.record import upgrade

    done = upgrade(store)
    if as_json:
        show_json(done.to_json())
    elif done.before is None:
        show(f"{done.store}: was empty and has the tables now, schema {done.after}")
    elif done.before == done.after:
        show(f"{done.store}: is up to date, schema {done.after}")
    else:
        show(f"{done.store}: went from schema {done.before} to {done.after}", *(f"  {step}" for step in done.steps))


@app.command("check", cls=Command)
def db_check(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Look for what is wrong with the database; nothing is changed.

    Its schema, its integrity, rows that belong to nothing; and jobs
    that should be running and that nobody drives.
    """
    from hpo.cli.terminal import show, show_json
    from hpo.record import check
    from hpo.text import in_bytes
    from trainers.errors import WarmbandError

    health = check(store)
    if as_json:
        show_json(health.to_json())
    else:
        rows = ", ".join(f"{count:,} {table}" for table, count in health.rows.items())
        show(
            f"{health.store}: {health.server}, schema {health.schema}, {in_bytes(health.size_bytes)}; "
            f"{rows or 'no rows'}"
        )
        for name, driver in health.abandoned.items():
            show(f"  nobody drives {name}: it was {driver}; run `hpo resume {name}`, or `hpo stop {name}`")
    if health.problems:
        raise WarmbandError(f"{health.store}: {'; '.join(health.problems)}")
    if not as_json:
        show("  nothing is wrong with it")
