"""The subcommands of `hpo`, in a module for each group."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.cli.commands import (
        check as check,
        data as data,
        db as db,
        export as export,
        files as files,
        logs as logs,
        models as models,
        records as records,
        report as report,
        resume as resume,
        simulate as simulate,
        submit as submit,
        tuning as tuning,
    )

load_when_used(__name__)
