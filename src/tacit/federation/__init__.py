"""What every computation over devices has in common: its kind, the question of a round, the answer, who collects it."""
