"""Training by hand: the command that a shell runs for what a trial's gang started."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.script.by_hand.command import command_line as command_line

load_when_used(__name__)
