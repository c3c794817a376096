"""Personalised models: split a device's text by time, fine-tune on the first part, judge on the rest, gate."""
