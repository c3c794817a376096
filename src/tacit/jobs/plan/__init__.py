"""What a run would cost and promise, before it is made."""
