"""Accuracy of models over devices."""
