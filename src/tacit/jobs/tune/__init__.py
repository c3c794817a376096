"""Client rates and server settings chosen on public text."""
