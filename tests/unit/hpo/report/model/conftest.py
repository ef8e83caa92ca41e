"""Linear algebra in one thread, as where a page is made."""

from tests.support.fixtures.hpo_report_model import one_thread  # noqa: F401
