"""What the parts of an attached run share."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from holdfast.member import Member, Place
from holdfast.random_state import Streams
from holdfast.staging import Staging
from holdfast.tracked import Tracked


@dataclass
class Session:
    member: Member
    place: Place
    backend: str
    timeout: timedelta
    epoch: int
    joined: bool  # the default group is the epoch's, not a placeholder
    streams: Streams = field(init=False)  # from the step loop's beginning: the script may seed until then
    tracked: Tracked = field(default_factory=Tracked)
    staging: Staging = field(default_factory=Staging)

    @property
    def rank(self) -> int:
        return self.place["rank"]

    @property
    def world_size(self) -> int:
        return self.place["world_size"]

    @property
    def on_device(self) -> bool:
        """Whether collectives run behind the interpreter's back, on a device."""
        return "nccl" in self.backend
