"""`tacit audit`: how much leaks, beside what is promised. `tacit audit RECIPE` is `tacit audit run RECIPE`."""

from typing import Any

from tacit.cli.groups import LateGroup, Later, at, late_app

COMMANDS: dict[str, Later] = {
    "attack": at(
        "audit_attack:attack",
        "The published attack on keyboards' models (arXiv:2210.16947), with defences off and on, beside guessing.",
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
