"""Reports of jobs: pictures, and the page that holds them.

Names are loaded when they are first used, since drawing libraries take a while to come.
"""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.report.data import JobData as JobData
    from hpo.report.figures import comparison_figures as comparison_figures, job_figures as job_figures
    from hpo.report.notebook import job_html as job_html, plan_html as plan_html
    from hpo.report.page import (
        Block as Block,
        Code as Code,
        Column as Column,
        Facts as Facts,
        Measured as Measured,
        Page as Page,
        Section as Section,
        Table as Table,
        Text as Text,
        comparison_page as comparison_page,
        job_page as job_page,
        job_sections as job_sections,
        with_error as with_error,
    )
    from hpo.report.palette import colours as colours
    from hpo.report.pictures import Figure as Figure, look as look

load_when_used(__name__)
