"""What people read; only run folders are read."""
