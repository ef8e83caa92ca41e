"""Processes for checks and starts: few at once, and fewer of one token."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hpo.serve import ServeSettings, starting
from hpo.serve.errors import RefusedError
from hpo.serve.security import Who


def test_one_token_cannot_take_all_processes(settings: ServeSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(name: str) -> Any:
        who = Who(name=name, rights="act", address="127.0.0.1")
        return asyncio.create_task(starting.start(settings, who, {"kind": "check", "text": ""}))

    async def run() -> None:
        gate = asyncio.Event()

        async def held(given: Any, who: Any, seconds: float) -> dict[str, Any]:
            await gate.wait()
            return {"valid": True}

        monkeypatch.setattr(starting.checks, "ask", held)
        served = [start("alice"), start("alice")]
        with pytest.raises(RefusedError) as refused:
            await start("alice")
        assert (refused.value.status, refused.value.wait) == (429, 5.0)
        served += [start("bob"), start("bob")]
        with pytest.raises(RefusedError) as busy:
            await start("carol")
        assert busy.value.status == 503
        gate.set()
        assert await asyncio.gather(*served) == [{"valid": True}] * 4
        assert await start("alice") == {"valid": True}

    asyncio.run(run())
    assert not starting._under_way
