"""The section `cost` of a job file: prices, and the limit of a job's cost."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from hpo.cost import Prices
from hpo.job_file.known_keys import Strict

Price = Annotated[float, Field(ge=0)]


class Cost(Strict):
    """Prices by the hour, and a limit. A worker costs the sum of the prices that are given."""

    per_worker_hour: Price = Field(0.0, description="price of a worker-hour, whatever the worker holds")
    per_cpu_hour: Price = Field(0.0, description="price of an hour of each CPU that a worker holds")
    per_gpu_hour: Price = Field(0.0, description="price of an hour of each GPU that a worker holds")
    per_memory_gb_hour: Price = Field(
        0.0, description="price of an hour of each 10^9 bytes that resources_per_worker has as memory"
    )
    instance: str | None = Field(
        None,
        description="a machine type in WARMBAND_HOME/prices.yaml (without one, in Warmband's own examples), of whose "
        "price a worker pays its share",
    )
    currency: str | None = Field(
        None, max_length=8, description="a label printed behind amounts, such as EUR; null is the table's, or none"
    )
    spot_discount: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="what is taken off these prices: 0.6 where spot machines cost 40%"
    )
    max_cost: Annotated[float, Field(gt=0)] | None = Field(
        None, description="the job stops once it was billed so much, with what it has found; null is no limit"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.prices()
        return self

    def prices(self) -> Prices:
        """In the Python API's form."""
        fields = self.model_dump(exclude={"instance", "currency", "max_cost"})
        if self.instance is not None:
            machine = Prices.of_instance(self.instance, currency=self.currency)
            return Prices(instance=machine.instance, currency=machine.currency, **fields)
        return Prices(currency=self.currency or "", **fields)

    def arguments(self) -> dict[str, Any]:
        """The arguments of `HyperparameterTuner` in it."""
        return {"prices": self.prices(), "max_cost": self.max_cost}
