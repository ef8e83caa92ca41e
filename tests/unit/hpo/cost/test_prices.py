"""What workers cost: laws of the amounts, what is refused and with which words, and the table of instances."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from ray.train import ScalingConfig

from hpo.cost import prices as module
from hpo.cost.prices import EXAMPLES, Prices, Tariff
from hpo.text import money
from tests.support import yaml_text
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, XGBoostTrainer
from trainers.gangs.in_process import cores

AMOUNTS = st.floats(0.0, 1000.0)
RESOURCES = st.fixed_dictionaries(
    {"CPU": st.floats(0.0, 64.0)}, optional={"GPU": st.floats(0.0, 8.0), "memory": st.floats(0.0, 1e12)}
)
SECONDS = st.floats(0.0, 1e7)


@given(AMOUNTS, AMOUNTS, AMOUNTS, st.floats(0.001, 1000.0), st.floats(0.0, 0.999), RESOURCES, SECONDS, SECONDS)
def test_a_cost_is_linear_in_seconds(
    cpu: float,
    gpu: float,
    memory: float,
    worker: float,
    discount: float,
    resources: dict[str, float],
    one: float,
    other: float,
) -> None:
    prices = Prices(
        per_worker_hour=worker,
        per_cpu_hour=cpu,
        per_gpu_hour=gpu,
        per_memory_gb_hour=memory,
        spot_discount=discount,
    )
    together = prices.of(one + other, resources)
    assert together == pytest.approx(prices.of(one, resources) + prices.of(other, resources))
    assert prices.of(2 * one, resources) == pytest.approx(2 * prices.of(one, resources))
    assert prices.of(0.0, resources) == 0.0
    full = Prices.from_json({**prices.to_json(), "spot_discount": 0.0})
    assert together == pytest.approx((1 - discount) * full.of(one + other, resources))
    assert together >= 0.0


@given(RESOURCES, st.floats(0.001, 10.0), SECONDS)
def test_each_resource_adds_its_own_part(resources: dict[str, float], price: float, seconds: float) -> None:
    parts = [
        Prices(per_worker_hour=1.0, **{name: price}).of(seconds, resources)
        - Prices(per_worker_hour=1.0).of(seconds, {})
        for name in ("per_cpu_hour", "per_gpu_hour", "per_memory_gb_hour")
    ]
    held = [resources.get("CPU", 0.0), resources.get("GPU", 0.0), resources.get("memory", 0.0) / 1e9]
    assert parts == pytest.approx([price * amount * seconds / 3600 for amount in held], abs=1e-6)


def test_an_hour_costs_what_an_hour_costs() -> None:
    assert Prices(per_worker_hour=0.12, currency="EUR").of(3600.0, {"CPU": 1.0}) == pytest.approx(0.12)
    by_parts = Prices.of_resources(cpu=0.05, gpu=1.0, memory_gb=0.01, currency="EUR", spot_discount=0.5)
    assert by_parts.tariff({"CPU": 4.0, "GPU": 1.0, "memory": 16e9}) == Tariff(
        per_worker_hour=pytest.approx(0.5 * (0.2 + 1.0 + 0.16)), currency="EUR"
    )
    assert by_parts.tariff({"CPU": 2.0, "licence": 3.0}).per_worker_hour == pytest.approx(0.05)


@given(st.floats(0.001, 100.0), st.floats(0.0, 1e6))
def test_an_amount_pays_for_what_costs_it(per_hour: float, amount: float) -> None:
    tariff = Tariff(per_worker_hour=per_hour, currency="")
    assert tariff.of(tariff.worker_seconds(amount)) == pytest.approx(amount)


def test_the_record_makes_the_same_prices_again() -> None:
    for prices in (
        Prices(per_worker_hour=0.12, currency="EUR"),
        Prices.of_resources(cpu=0.1, gpu=2.0, spot_discount=0.25),
        Prices.of_instance("example-gpu", spot_discount=0.6),
    ):
        assert Prices.from_json(json.loads(json.dumps(prices.to_json()))) == prices


def test_what_cannot_be_a_price_is_refused() -> None:
    hours = ("per_worker_hour", "per_cpu_hour", "per_gpu_hour", "per_memory_gb_hour")
    refuses_each(
        [
            (Prices, ("prices", 0, *hours, "instance")),
            (lambda: Prices(per_worker_hour=-1), ("per_worker_hour", -1, 0)),
            (lambda: Prices(per_worker_hour="0.1"), ("per_worker_hour", "'0.1'", "number")),
            (lambda: Prices(per_cpu_hour=True), ("per_cpu_hour", True, "number")),
            (lambda: Prices(per_gpu_hour=float("nan")), ("per_gpu_hour", "nan", "number")),
            (lambda: Prices(per_worker_hour=float("inf")), ("per_worker_hour", "inf", "number")),
            (lambda: Prices(per_worker_hour=1, spot_discount=1.0), ("spot_discount", 1.0, "0", "1")),
            (lambda: Prices(per_worker_hour=1, spot_discount=-0.1), ("spot_discount", -0.1, "0", "1")),
            (lambda: Prices(per_worker_hour=1, currency=3), ("currency", 3, 8, "EUR")),
            (lambda: Prices(per_worker_hour=1, currency="a\nb"), ("currency", repr("a\nb"), 8, "EUR")),
            (lambda: Prices(instance="example-small"), ("instance", "example-small", "Prices.of_instance('name')")),
        ],
        ConfigurationError,
    )


def test_a_worker_that_costs_nothing_is_refused() -> None:
    with refuses(ConfigurationError, field="CPU", value=1, remedy="per_worker_hour"):
        Prices.of_resources(gpu=2.0).tariff({"CPU": 1.0})


# ---- instances


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text(
        "currency: CHF\ninstances:\n"
        "  half: {per_hour: 2, cpus: 8, gpus: 2, memory_gb: 32}\n"
        "  plain: {per_hour: 0.4, cpus: 4}\n"
    )
    return path


@pytest.mark.parametrize(
    ("resources", "share"),
    [
        ({"CPU": 2.0}, 0.25),
        ({"CPU": 1.0, "GPU": 1.0}, 0.5),
        ({"CPU": 1.0, "memory": 32e9}, 1.0),
        ({"CPU": 8.0, "GPU": 0.5, "memory": 1e9}, 1.0),
    ],
)
def test_a_worker_pays_for_its_largest_share_of_a_machine(
    table: Path, resources: dict[str, float], share: float
) -> None:
    prices = Prices.of_instance("half", table=table, spot_discount=0.1)
    assert prices.tariff(resources) == Tariff(per_worker_hour=pytest.approx(2 * share * 0.9), currency="CHF")
    assert Prices.of_instance("half", table=table, currency="EUR").currency == "EUR"


def test_a_worker_that_does_not_fit_on_the_machine_is_refused(table: Path) -> None:
    with refuses(ConfigurationError, field=("gpus", "plain", "0"), value=1, remedy="resources_per_worker"):
        Prices.of_instance("plain", table=table).tariff({"GPU": 1.0})
    with refuses(ConfigurationError, field=("cpus", "half", "8"), value=16, remedy="resources_per_worker"):
        Prices.of_instance("half", table=table).tariff({"CPU": 16.0})
    # Where the table does not say how much memory there is, none is missing.
    assert Prices.of_instance("plain", table=table).tariff({"CPU": 1.0, "memory": 1e12}).per_worker_hour == 0.1


def test_an_unknown_instance_names_the_nearest_and_the_table(table: Path, home: Path) -> None:
    with refuses(ConfigurationError, field="instance", value="plan", remedy=(str(table), "half", "plain")) as refused:
        Prices.of_instance("plan", table=table)
    assert str(refused.value).count("plain") > str(refused.value).count("half"), "it is the nearest, too"
    remedies = (str(EXAMPLES), "example-small", f"{home}/prices.yaml")
    with refuses(ConfigurationError, field="instance", value="half", remedy=remedies):
        Prices.of_instance("half")


def test_a_table_of_ones_own_goes_before_the_examples(table: Path, home: Path) -> None:
    home.mkdir()
    (home / "prices.yaml").write_text(table.read_text())
    assert Prices.of_instance("half").currency == "CHF"
    with refuses(ConfigurationError, field="instance", value="hlf", remedy="half"):
        Prices.of_instance("hlf")


def test_a_table_that_is_wrong_says_where(tmp_path: Path) -> None:
    def table_of(text: str, *names: object, named: bool = True) -> tuple[Callable[[], Prices], tuple[object, ...]]:
        """Return a call that reads such a table from a file of its own, and the names, with the file's if it is."""
        path = tmp_path / f"own-{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(text)
        return lambda: Prices.of_instance("a", table=path), (*names, str(path)) if named else names

    refuses_each(
        [
            table_of("instances: [", "line 1", "column 13"),
            table_of("currency: EUR\ncurrency: CHF", "line 2", "column 1", "currency"),
            table_of("currency: !!bool maybe", "maybe", "tags"),
            table_of("currency: !!python/name:os.system x", "line 1", "column 11"),
            table_of("- 1", [1], "currency", "instances"),
            table_of("currency: 3\ninstances: {}", "currency", 3, "text"),
            table_of("currency: EUR", "instances", None),
            table_of("instance: {}", "instance", "instances"),
            table_of("instances: {a: 3}", "instance", "'a'", 3, "per_hour", "cpus"),
            table_of("instances: {a: {cpus: 2}}", "instance", "'a'", "per_hour"),
            table_of("instances: {a: {per_hour: 2}}", "instance", "'a'", "cpus"),
            table_of("instances: {a: {per_hour: 2, cpu: 2}}", "'a'", "cpu", "cpus"),
            table_of("instances: {a: {per_hour: x, cpus: 2}}", "'a'", "per_hour", "'x'", "number", named=False),
            table_of("instances: {a: {per_hour: 1, cpus: 0}}", "'a'", "cpus", 0, named=False),
        ],
        ConfigurationError,
    )


def test_a_table_that_is_not_there_says_so(tmp_path: Path) -> None:
    with refuses(ConfigurationError, field=str(tmp_path / "none.yaml")):
        Prices.of_instance("a", table=tmp_path / "none.yaml")


def test_the_examples_are_examples_that_work() -> None:
    entries = yaml_text.load(EXAMPLES.read_text())["instances"]
    assert all(name.startswith("example-") for name in entries)
    for name in entries:
        assert Prices.of_instance(name).tariff({"CPU": 1.0}).per_worker_hour > 0
    assert module.EXAMPLES.name == "prices.yaml"


# ---- of trainers


def test_what_a_worker_holds_comes_from_its_scaling() -> None:
    def held(**scaling: Any) -> dict[str, float]:
        return XGBoostTrainer(scaling=ScalingConfig(**scaling)).worker_resources

    assert held(num_workers=3) == {"CPU": 1.0}
    assert held(num_workers=3, use_gpu=True) == {"GPU": 1.0}
    assert held(num_workers=3, use_gpu=True, resources_per_worker={"CPU": 4}) == {"CPU": 4.0, "GPU": 1.0}
    assert held(num_workers=1, resources_per_worker={"CPU": 2, "memory": 4e9}) == {"CPU": 2.0, "memory": 4e9}
    assert held(num_workers=0) == {"CPU": float(cores(None))}
    assert held(num_workers=0, resources_per_worker={"CPU": 3}) == {"CPU": 3.0}


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.0, "0.00 EUR"),
        (1234.5, "1,234.50 EUR"),
        (0.12, "0.12 EUR"),
        (0.00123, "0.0012 EUR"),
        (5e-12, "0.00000000 EUR"),
    ],
)
def test_money_is_said_to_two_digits_that_say_something(amount: float, text: str) -> None:
    assert money(amount, "EUR") == text
    assert money(amount, "") == text.removesuffix(" EUR")
