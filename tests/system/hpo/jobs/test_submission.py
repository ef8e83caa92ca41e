"""Jobs that are submitted to a Ray cluster: what is refused before anything starts, and what a driver knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import sqlalchemy as sa

from hpo.jobs.launch import background
from hpo.jobs.launch.ray_jobs import JobsServer
from hpo.record import ACTS_AS
from hpo.record.store import Store
from tests.support.postgres import PASSWORD, Postgres


def test_a_driver_on_a_cluster_is_handed_no_password_and_none_that_is_masked(postgres: Postgres) -> None:
    server = cast(JobsServer, SimpleNamespace(address="http://127.0.0.1:1"))
    url = sa.make_url(postgres.new_database())
    in_query = url.set(password=None).update_query_dict({"password": PASSWORD})
    for secret in (url, in_query):
        with Store(secret.render_as_string(hide_password=False)) as store:
            assert PASSWORD not in store.url
            handed = background._reaching(store, server)
            assert handed.keys() == {ACTS_AS}
            assert PASSWORD not in str(handed)
    postgres.drop(str(url))
