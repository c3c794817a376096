"""`tacit audit`: how much leaks, beside what is promised. `tacit audit RECIPE` is `tacit audit run RECIPE`."""

from typing import Any

from tacit.cli.groups import LateGroup, Later, at, late_app

COMMANDS: dict[str, Later] = {
    "mechanism": at("audit_mechanism:mechanism", "How much a mechanism leaks at least, beside what it claims."),
    "run": at(
        "audit_run:run",
        "Train once with canaries among the clients, and say how much of them leaked at least, beside the claim.",
    ),
    "device": at(
        "audit_device:device",
        "Whether text shows in anything that leaves a device but what its reports say: requests, lengths, times, "
        "refusals and retries under an operator's models, tasks, logs and clocks.",
    ),
    "randomizer": at(
        "audit_randomizer:randomizer",
        "What local randomizers leak: every choice of small domains, likelihood ratios of large ones, shuffled sums, "
        "and words that too few typed.",
    ),
    "attack": at(
        "audit_attack:attack",
        "The published attack on keyboards' models (arXiv:2210.16947), with defences off and on, beside guessing.",
    ),
    "court": at(
        "audit_court:court",
        "Twelve historic faults, found, and their mended versions, kept; and what peers' code leaks beside its claim.",
    ),
}


class AuditGroup(LateGroup):
    """What stands where a sub-command would, and is a path or a shipped recipe, is the recipe of `run`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        if args[0] not in self.commands and _is_recipe(args[0]):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


def _is_recipe(word: str) -> bool:
    """Whether it is a path, or the name of a recipe that comes with the package."""
    if word.startswith("-"):
        return False
    if word.endswith(".toml") or "/" in word or "\\" in word:
        return True
    from tacit.jobs.shipped_recipes import shipped_recipes  # where nothing else is meant

    return word in {each.name for each in shipped_recipes().recipes}


app = late_app(COMMANDS, cls=AuditGroup, help="How much leaks at least, with a confidence, beside what is promised.")
