"""Tasks to discover words; what they need is loaded when the first plan of one came."""

from typing import TYPE_CHECKING

from tacit.device.own_text import OwnText
from tacit.device.task_handler import Draw, Fetch
from tacit.protocol.bodies import Report
from tacit.protocol.messages import Plan, RoundTask

if TYPE_CHECKING:
    from tacit.device.local_cost import LocalPrice


class WordsDoing:
    """See Doing."""

    def __init__(self, text: OwnText) -> None:
        self._text = text

    def price(self, plan: Plan, fetch: Fetch) -> "LocalPrice":
        """See Doing; everything is in the plan."""
        from tacit.device.local_cost import local_price

        return local_price(plan)

    def check(self, plan: Plan) -> None:
        """See Doing."""
        self._text.check()

    def report(self, plan: Plan, task: RoundTask, content: bytes, *, draw: Draw) -> Report:
        """See Doing."""
        from tacit.device.discover_votes import votes_of

        return votes_of(plan, task, content, self._text, draw=draw)
