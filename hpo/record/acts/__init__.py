"""Acts of persons on jobs: who did what, and what a running job hears of it."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.record.acts.asked import Asked as Asked, stops_in as stops_in
    from hpo.record.acts.persons import (
        ACTS_AS as ACTS_AS,
        Actor as Actor,
        acting as acting,
        actor as actor,
        user as user,
    )
    from hpo.record.acts.trail import act as act, acted as acted, gone as gone

load_when_used(__name__)
