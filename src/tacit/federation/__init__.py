"""What every computation over devices has in common: its kind, the question of a round, the answer, who collects it,
and what it costs a device."""

__all__: list[str] = []
