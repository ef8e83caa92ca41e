"""Console: the pages of the server in a browser, which read and act through the REST API alone."""

from hpo.serve.console.pages import routes

__all__ = ["routes"]
