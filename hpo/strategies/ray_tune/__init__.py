"""Ray Tune: any of its searchers and schedulers, and Optuna's samplers, as a strategy."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.strategies.ray_tune.guard import Guard as Guard
    from hpo.strategies.ray_tune.part import named_code as named_code
    from hpo.strategies.ray_tune.populations import check_population as check_population
    from hpo.strategies.ray_tune.strategy import RayTuneStrategy as RayTuneStrategy

load_when_used(__name__)
