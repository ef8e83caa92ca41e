"""A Gaussian process over configurations and resource."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

STEPS = 20
"""Of the search for the kernel's scales, which is over by then: the likelihood moves by less than a choice needs."""

NUGGET = 1e-5
"""Added to variances where functions are drawn: of points that are nearly one, rounding makes the matrix indefinite."""


class Process:
    """A Gaussian process with a Matern kernel, one length scale a feature, and noise.

    Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1 and section 4.2.

    Args:
        features: shape (n, d), within 0 to 1.
        targets: shape (n,), of mean 0 and standard deviation 1 or so.
        scales: of another process of as many features; None: those that are likeliest here.
    """

    def __init__(self, features: NDArray[Any], targets: NDArray[Any], scales: NDArray[Any] | None = None) -> None:
        kernel = ConstantKernel(1.0, (0.1, 10.0)) * Matern(
            np.full(features.shape[1], 0.7), (0.1, 10.0), nu=2.5
        ) + WhiteKernel(0.05, (1e-3, 1.0))
        self._features, self._targets = features, targets
        scales = self._likeliest(kernel) if scales is None else scales
        self._regressor = self._fitted(kernel.clone_with_theta(scales))

    @property
    def scales(self) -> NDArray[Any]:
        """Of the kernel, as logarithms."""
        scales: NDArray[Any] = self._regressor.kernel_.theta
        return scales

    @property
    def noise(self) -> float:
        """The variance of what is measured twice of one point."""
        return float(self._regressor.kernel_.k2.noise_level)

    def _likeliest(self, kernel: Any) -> NDArray[Any]:
        """The scales of the greatest likelihood near a kernel's."""
        start = self._fitted(kernel)

        def unlikelihood(scales: NDArray[Any]) -> tuple[float, NDArray[Any]]:
            value, gradient = start.log_marginal_likelihood(scales, eval_gradient=True)
            return -value, -gradient

        # Not by scikit-learn's own search, which warns of each scale at a bound: a hyperparameter that matters little.
        likeliest: NDArray[Any] = minimize(
            unlikelihood, kernel.theta, jac=True, method="L-BFGS-B", bounds=kernel.bounds, options={"maxiter": STEPS}
        ).x
        return likeliest

    def believing(self, features: NDArray[Any]) -> None:
        """Takes points whose values are to come at what it predicts of them, so that it does not ask for them again.

        Source: Ginsbourger, Le Riche, Carraro, "Kriging Is Well-Suited to Parallelize Optimization" (2010), section
        3.2, "Kriging believer".

        Args:
            features: shape (n, d).
        """
        self._features = np.vstack([self._features, features])
        self._targets = np.concatenate([self._targets, self._regressor.predict(features)])
        self._regressor = self._fitted(self._regressor.kernel_)

    def predict(self, features: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean and standard deviation of the values at points, without noise.

        Args:
            features: shape (n, d).

        Returns:
            Two arrays of shape (n,).
        """
        mean, deviation = self._regressor.predict(features, return_std=True)
        return mean, np.sqrt(np.maximum(deviation**2 - self.noise, 1e-10))

    def drawn(self, features: NDArray[Any], normal: NDArray[Any]) -> NDArray[Any]:
        """Values at points as the process takes them to be possible, without noise: functions drawn from it.

        Args:
            features: shape (n, d).
            normal: draws of the standard normal distribution, a function a column, shape (n, functions).

        Returns:
            Shape (n, functions).
        """
        mean, covariance = self._regressor.predict(features, return_cov=True)
        covariance[np.diag_indices_from(covariance)] += NUGGET - self.noise
        values: NDArray[Any] = mean[:, None] + cholesky(covariance, lower=True) @ normal
        return values

    def left_out(self, groups: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean and standard deviation of each target, noise included, as all groups but its own foretell it.

        The kernel's scales stay, which all points chose.

        Source: Rasmussen and Williams (2006), section 5.4.2, equation 5.12, for one point; of a group, with its block
        of the inverse in place of one number.

        Args:
            groups: which points are left out together, shape (n,).

        Returns:
            Two arrays of shape (n,).
        """
        regressor = self._regressor
        inverse = cho_solve((regressor.L_, True), np.eye(len(regressor.L_)))
        weights, means, deviations = inverse @ self._targets, self._targets.copy(), np.empty(len(self._targets))
        for group in np.unique(groups):
            places = np.flatnonzero(groups == group)
            covariance = np.linalg.inv(inverse[np.ix_(places, places)])
            means[places] -= covariance @ weights[places]
            deviations[places] = np.sqrt(np.diag(covariance))
        return means, deviations

    def _fitted(self, kernel: Any) -> GaussianProcessRegressor:
        """The process with the scales that a kernel has."""
        return GaussianProcessRegressor(kernel, alpha=1e-8, optimizer=None).fit(self._features, self._targets)
