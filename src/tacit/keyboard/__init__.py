"""What the device runs."""
