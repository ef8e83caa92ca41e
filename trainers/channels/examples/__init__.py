"""Examples: channels of PyTorch datasets, whose items are images, text, or columns of various shapes and types."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.channels.examples.given import KINDS as KINDS, Examples as Examples
    from trainers.channels.examples.opened import OpenedExamples as OpenedExamples, PlacedExamples as PlacedExamples
    from trainers.channels.examples.streamed import Streamed as Streamed

load_when_used(__name__)
