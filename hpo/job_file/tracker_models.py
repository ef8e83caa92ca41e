"""The trackers and the notices of a job file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hpo.job_file.known_keys import Give, Strict, own_fields
from hpo.notices import BUDGET_SHARE, PREFIX

if TYPE_CHECKING:
    from hpo.notices import Email, Webhook
    from hpo.observers import Callback
    from hpo.trackers import Tracker


class _Tracked(Strict):
    """Base of trackers, which are checked where they stand."""

    python: ClassVar[str]
    """The tracker's name in `hpo.trackers`, whose arguments have the names of the keys."""

    def tracker(self) -> Tracker:
        """In the Python API's form."""
        import hpo.trackers as trackers

        made: Tracker = getattr(trackers, self.python)(**own_fields(self))
        return made

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.tracker()
        return self


class TensorBoardSpec(_Tracked):
    """TensorBoard."""

    python: ClassVar[str] = "TensorBoard"

    folder: str = Field(description="where event files go: FOLDER/JOB/TRIAL")


class MLflowSpec(_Tracked):
    """MLflow."""

    python: ClassVar[str] = "MLflow"

    tracking_uri: str | None = Field(
        None,
        description="server or database, such as http://host:5000 or sqlite:///mlflow.db; null is MLflow's own choice, "
        "by MLFLOW_TRACKING_URI say. Leave passwords to MLFLOW_TRACKING_PASSWORD",
    )
    experiment: str = Field("warmband", min_length=1, description="the experiment's name; made where it is not there")
    register_as: str | None = Field(
        None,
        description="what MLflow's registry calls the best trial's model, which becomes a version there at the job's "
        "end, as of `hpo register`; null registers none",
    )


class WeightsAndBiasesSpec(_Tracked):
    """Weights & Biases."""

    python: ClassVar[str] = "WeightsAndBiases"

    project: str = Field(min_length=1, description="the project's name")
    entity: str | None = Field(None, description="the user or team; null is the account's own")
    mode: Literal["online", "offline"] | None = Field(
        None, description="offline keeps files for `wandb sync`; null is what wandb is set to, by WANDB_MODE say"
    )
    folder: str | None = Field(None, description="where its files go; null is WARMBAND_HOME")


class Trackers(Strict):
    """Trackers that a job is logged to, beside its record."""

    tensorboard: Annotated[TensorBoardSpec | None, Give("a group of keys, such as {folder: runs}")] = Field(
        None, description="event files; null is none"
    )
    mlflow: Annotated[
        MLflowSpec | None, Give("a group of keys, such as {experiment: churn}; {} takes all defaults")
    ] = Field(None, description="an MLflow server or database; null is none")
    wandb: Annotated[WeightsAndBiasesSpec | None, Give("a group of keys, such as {project: churn}")] = Field(
        None, description="Weights & Biases; null is none"
    )

    def callbacks(self) -> list[Callback]:
        """In the Python API's form."""
        return [model.tracker() for model in (self.tensorboard, self.mlflow, self.wandb) if model is not None]


class _Noticed(Strict):
    """Base of notices' entries, which are checked where they stand."""

    python: ClassVar[str]
    """The entry's name in `hpo.notices`, whose arguments have the names of the keys."""

    events: list[Literal["ended", "failed", "stopped", "budget"]] = Field(
        ["ended", "failed", "stopped", "budget"],
        description="which notices are sent: the job is Completed, Failed or Stopped, or has used budget_share",
    )
    budget_share: Annotated[float, Give("a number above 0 and at most 1")] = Field(
        BUDGET_SHARE, description="the share of max_cost or max_runtime_in_seconds that a notice is of"
    )

    def entry(self) -> Webhook | Email:
        """In the Python API's form."""
        import hpo.notices as notices

        made: Webhook | Email = getattr(notices, self.python)(**own_fields(self, "type"))
        return made

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.entry()
        return self


class WebhookSpec(_Noticed):
    """A webhook."""

    python: ClassVar[str] = "Webhook"

    type: Literal["webhook"] = Field(description="a URL that notices are posted to as JSON")
    url: str | None = Field(None, description="http or https, without user and query: the record keeps it")
    url_variable: str | None = Field(
        None, description=f"in its place, the environment variable {PREFIX}... that holds the URL, where it is secret"
    )
    secret_variable: str | None = Field(
        None, description=f"the environment variable {PREFIX}... that holds the secret of signatures; null signs none"
    )


class EmailSpec(_Noticed):
    """E-mail."""

    python: ClassVar[str] = "Email"

    type: Literal["email"] = Field(description="mail by an SMTP server")
    host: str = Field(description="the server's name")
    port: int = Field(587, ge=1, le=65535, description="its port")
    sender: Annotated[str, Give("an address such as team@example.org")] = Field(
        description="the address that mail is from"
    )
    to: list[str] = Field(description="the addresses that it goes to")
    starttls: bool = Field(True, description="encrypt, and check the server's certificate")
    user_variable: str | None = Field(
        None, description=f"the environment variable {PREFIX}... that holds the user; null logs in as nobody"
    )
    password_variable: str | None = Field(None, description="likewise the password")


NoticeSpec = Annotated[WebhookSpec | EmailSpec, Field(discriminator="type")]
