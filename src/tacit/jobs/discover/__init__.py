"""Word discovery over simulated clients or real devices."""
