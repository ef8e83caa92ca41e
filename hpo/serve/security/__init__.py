"""Security of the server: tokens, sessions, codes, rates, and the guard before every request."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.serve.security.codes import Codes as Codes
    from hpo.serve.security.guard import Guard as Guard, needs_act as needs_act
    from hpo.serve.security.login import login_routes as login_routes, session as session
    from hpo.serve.security.rates import Rates as Rates
    from hpo.serve.security.secret_file import Rights as Rights, SecretFile as SecretFile
    from hpo.serve.security.sessions import Sessions as Sessions
    from hpo.serve.security.tokens import Token as Token, Tokens as Tokens, Who as Who

load_when_used(__name__)
