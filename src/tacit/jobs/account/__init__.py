"""What a mechanism, a run, a population or local reports promise."""
