"""Deployments that the server is asked for: processes of their own, and files that say how far each has come."""

from hpo.serve.deployments.asked import begin as begin, end as end
from hpo.serve.deployments.listing import listed as listed
