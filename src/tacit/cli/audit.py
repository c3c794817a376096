"""`tacit audit`: how much leaks, beside what is promised. `tacit audit RECIPE` is `tacit audit run RECIPE`."""

from typing import Any

from tacit.cli.groups import LateGroup, Later, at, late_app

COMMANDS: dict[str, Later] = {
    "device": at(
        "audit_device:device",
        "Whether text shows in anything that leaves a device but what its reports say: requests, lengths, times, "
        "refusals and retries under an operator's models, tasks, logs and clocks.",
    ),
    "randomizer": at(
        "audit_randomizer:randomizer",
        "What local randomizers leak: every choice of small domains, likelihood ratios of large ones, shuffled sums, and "
        "words that too few typed.",
    ),
}


class AuditGroup(LateGroup):
    """What stands where a sub-command would, and is a path or a shipped recipe, is the recipe of `run`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        first = args[0]
        if first not in self.commands and (first.endswith(".toml") or "/" in first or "\\" in first):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


app = late_app(COMMANDS, cls=AuditGroup, help="How much leaks at least, with a confidence, beside what is promised.")
