"""The HTML page of a job, or of several jobs side by side."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.report.page.blocks import (
        Code as Code,
        Column as Column,
        Facts as Facts,
        Measured as Measured,
        Table as Table,
        Text as Text,
    )
    from hpo.report.page.cells import cells_of as cells_of, with_error as with_error
    from hpo.report.page.comparison import comparison_page as comparison_page
    from hpo.report.page.conclusion import subtitle as subtitle, verdict as verdict
    from hpo.report.page.page import Block as Block, Page as Page, Section as Section
    from hpo.report.page.render import template as template
    from hpo.report.page.sections import job_page as job_page, job_sections as job_sections
    from hpo.report.page.training import (
        training_subtitle as training_subtitle,
        training_verdict as training_verdict,
    )

load_when_used(__name__)
