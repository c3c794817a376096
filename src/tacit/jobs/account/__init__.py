"""The guarantee of a mechanism, a run, a population or local reports."""
