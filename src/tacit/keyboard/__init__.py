"""What the phone runs."""
