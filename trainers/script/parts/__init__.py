"""A worker's part of a program: started for each assignment, or kept loaded between them."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.script.parts.kept_process import KeptProcess as KeptProcess
    from trainers.script.parts.last_words import last_words as last_words, reason as reason
    from trainers.script.parts.part import (
        MEET_SECONDS as MEET_SECONDS,
        Part as Part,
        Parts as Parts,
        Printing as Printing,
    )
    from trainers.script.parts.settings import ScriptSettings as ScriptSettings

load_when_used(__name__)
