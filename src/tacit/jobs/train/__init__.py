"""Private federated training."""
