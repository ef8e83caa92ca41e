"""What people look at: a job's pictures, and the page that holds them.

Names are loaded when they are first used, since drawing libraries take a while to come.
"""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.report.data import JobData
    from hpo.report.page.blocks import Code, Column, Facts, Measured, Table, Text
    from hpo.report.page.comparison import comparison_page
    from hpo.report.page.page import Page, Section
    from hpo.report.page.sections import job_page, job_sections
    from hpo.report.pictures.figure import Figure
    from hpo.report.pictures.figures import comparison_figures, job_figures

__all__ = [
    "Code",
    "Column",
    "Facts",
    "Figure",
    "JobData",
    "Measured",
    "Page",
    "Section",
    "Table",
    "Text",
    "comparison_figures",
    "comparison_page",
    "job_figures",
    "job_page",
    "job_sections",
]

load_when_used(
    __name__,
    {
        "Code": "hpo.report.page.blocks",
        "Column": "hpo.report.page.blocks",
        "Facts": "hpo.report.page.blocks",
        "Figure": "hpo.report.pictures.figure",
        "JobData": "hpo.report.data",
        "Measured": "hpo.report.page.blocks",
        "Page": "hpo.report.page.page",
        "Section": "hpo.report.page.page",
        "Table": "hpo.report.page.blocks",
        "Text": "hpo.report.page.blocks",
        "comparison_page": "hpo.report.page.comparison",
        "comparison_figures": "hpo.report.pictures.figures",
        "job_figures": "hpo.report.pictures.figures",
        "job_page": "hpo.report.page.sections",
        "job_sections": "hpo.report.page.sections",
    },
)
