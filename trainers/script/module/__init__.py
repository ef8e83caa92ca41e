"""The folder that a program's Python path gets, so that it finds the module `warmband`."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.script.module import warmband_rank as warmband_rank

load_when_used(__name__)
