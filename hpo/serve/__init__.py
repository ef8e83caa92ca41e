"""The server: jobs of the record as a REST API, events and a console, under one port."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.serve.app import make_app as make_app
    from hpo.serve.aws import Keys as Keys, settings_tables as settings_tables
    from hpo.serve.places import Places as Places
    from hpo.serve.rest import rest_app as rest_app
    from hpo.serve.security import Rights as Rights, Tokens as Tokens, needs_act as needs_act
    from hpo.serve.server import run as run
    from hpo.serve.settings import ServeSettings as ServeSettings

load_when_used(__name__)
