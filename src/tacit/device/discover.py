"""Tasks to discover words; what they need is loaded with the first plan of one."""

from tacit.device.own_text import OwnText
from tacit.device.task_handler import Draw, Refuse
from tacit.federation.cost import Cost
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import MatrixFile, Plan, RoundTask


class DiscoverHandler:
    """See TaskHandler."""

    def __init__(self, text: OwnText, trainer: object = None) -> None:
        """trainer: of no use here."""
        self._text = text

    def matrix(self, plan: Plan) -> MatrixFile | None:
        """See TaskHandler; everything is in the plan."""
        return None

    def cost(self, plan: Plan, matrix: bytes | None) -> Cost:
        """See TaskHandler."""
        from tacit.device.discover_votes import local_cost

        return local_cost(plan)

    def check(self, plan: Plan) -> None:
        """See TaskHandler."""
        self._text.check()

    def check_task(self, plan: Plan, cost: Cost, task: RoundTask, refuse: Refuse) -> None:
        """See TaskHandler; what is asked is checked where the answer is made."""

    def report(self, plan: Plan, task: RoundTask, content: bytes, *, draw: Draw) -> ReportBody:
        """See TaskHandler."""
        from tacit.device.discover_votes import votes_of

        return votes_of(plan, task, content, self._text, draw=draw)
