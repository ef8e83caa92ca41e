"""Plans of searches with a history."""

from __future__ import annotations

from hpo.strategies.hyperband import lay_out, lay_out_cutting, run_all
from hpo.strategies.median_rule import with_median_rule

PLANS = [
    lay_out(20, 1, 27),
    lay_out_cutting(33, 1, 27),
    lay_out_cutting(9, 1, 9),
    run_all(14, 5),
    with_median_rule(run_all(16, 18)),
]
