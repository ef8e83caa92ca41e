"""Simulated searches on recorded learning curves: regret, wall time and bill without training."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.simulation.comparison import Row as Row, compare as compare, mean_and_error as mean_and_error
    from hpo.simulation.curve_files import open_curves as open_curves
    from hpo.simulation.curves import Curves as Curves, RecordedCurve as RecordedCurve
    from hpo.simulation.replay import Replayed as Replayed, ReplayedTrial as ReplayedTrial, simulate as simulate

load_when_used(__name__)
