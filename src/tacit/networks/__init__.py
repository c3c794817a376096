"""What is trained: networks, their loss and metrics, their files. One class and one line a network."""
