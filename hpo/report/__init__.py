"""What people look at: a job's pictures, and the page that holds them.

Names are loaded when they are first used, since drawing libraries take a while to come.
"""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.report.blocks import Code, Column, Facts, Measured, Table, Text
    from hpo.report.comparison import comparison_page
    from hpo.report.data import JobData
    from hpo.report.figure import Figure
    from hpo.report.figures import comparison_figures, job_figures
    from hpo.report.page import Page, Section
    from hpo.report.sections import job_page, job_sections

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
        "Code": "hpo.report.blocks",
        "Column": "hpo.report.blocks",
        "Facts": "hpo.report.blocks",
        "Figure": "hpo.report.figure",
        "JobData": "hpo.report.data",
        "Measured": "hpo.report.blocks",
        "Page": "hpo.report.page",
        "Section": "hpo.report.page",
        "Table": "hpo.report.blocks",
        "Text": "hpo.report.blocks",
        "comparison_page": "hpo.report.comparison",
        "comparison_figures": "hpo.report.figures",
        "job_figures": "hpo.report.figures",
        "job_page": "hpo.report.sections",
        "job_sections": "hpo.report.sections",
    },
)
