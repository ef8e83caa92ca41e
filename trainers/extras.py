"""The packages of Warmband's extras, and the command that installs one where a feature needs it."""

from __future__ import annotations

from importlib.util import find_spec

from trainers.errors import ConfigurationError

EXTRAS = {
    "bohb": ("ConfigSpace", "Pyro4", "serpent", "statsmodels"),
    "data": ("datasets", "PIL"),
    "deploy": ("starlette", "uvicorn"),
    "mlflow": ("mlflow",),
    "searchers": ("cmaes", "hyperopt"),
    "serve": ("botocore", "cbor2", "fastapi", "uvicorn"),
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
}
"""The extras of pyproject.toml that features need, each with modules that it brings."""


def check_extra(feature: str, extra: str, *modules: str) -> None:
    """Check that the packages of a feature are installed.

    Args:
        feature: its name, which begins the message.
        extra: the extra that has its packages.
        modules: those of the extra that the feature imports; none stands for all.

    Raises:
        ConfigurationError: one is missing; the message has the command that installs it.
    """
    missing = [name for name in modules or EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"{feature} needs packages that are not installed: {', '.join(missing)}; install them: {install(extra)}"
        )


def install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'warmband[{extra}]'"
