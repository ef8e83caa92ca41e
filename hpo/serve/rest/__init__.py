"""REST API of the server: documents of jobs, their events, and acts."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.serve.rest.api import rest_app as rest_app

load_when_used(__name__)
