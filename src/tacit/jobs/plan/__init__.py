"""What a run would cost, and its guarantee, before it is made."""
