"""Would a model of one's own help, and whom."""
