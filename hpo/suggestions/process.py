"""A Gaussian process over configurations and resource."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

STEPS = 20
"""Of the search for the kernel's scales, which is over by then: the likelihood moves by less than a choice needs."""


class Process:
    """A Gaussian process with a Matern kernel, one length scale a feature, and noise.

    Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1 and section 4.2.

    Args:
        features: shape (n, d), within 0 to 1.
        targets: shape (n,), of mean 0 and standard deviation 1 or so.
    """

    def __init__(self, features: NDArray[Any], targets: NDArray[Any]) -> None:
        kernel = ConstantKernel(1.0, (0.1, 10.0)) * Matern(
            np.full(features.shape[1], 0.7), (0.1, 10.0), nu=2.5
        ) + WhiteKernel(0.05, (1e-3, 1.0))
        self._features, self._targets = features, targets
        regressor = GaussianProcessRegressor(kernel, alpha=1e-8, optimizer=_climb)
        with warnings.catch_warnings():
            # A scale at its bound is a hyperparameter that matters little, or much: nothing to tell a user.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._regressor = regressor.fit(features, targets)

    def believing(self, features: NDArray[Any]) -> None:
        """Takes points whose values are to come at what it predicts of them, so that it does not ask for them again.

        Source: Ginsbourger, Le Riche, Carraro, "Kriging Is Well-Suited to Parallelize Optimization" (2010), section
        3.2, "Kriging believer".

        Args:
            features: shape (n, d).
        """
        self._features = np.vstack([self._features, features])
        self._targets = np.concatenate([self._targets, self._regressor.predict(features)])
        fixed = GaussianProcessRegressor(self._regressor.kernel_, alpha=1e-8, optimizer=None)
        self._regressor = fixed.fit(self._features, self._targets)

    def predict(self, features: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean and standard deviation of the values at points, without noise.

        Args:
            features: shape (n, d).

        Returns:
            Two arrays of shape (n,).
        """
        mean, deviation = self._regressor.predict(features, return_std=True)
        noise = self._regressor.kernel_.k2.noise_level
        return mean, np.sqrt(np.maximum(deviation**2 - noise, 1e-10))


def _climb(objective: Any, start: NDArray[Any], bounds: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """The scales of the greatest likelihood that a few steps from the start reach."""
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS})
    return found.x, found.fun
