"""Rounds of real devices: opened, waited for, closed."""
