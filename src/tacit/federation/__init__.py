"""What every program knows of a computation that asks devices: its kind, its questions, and what it costs a device."""

__all__: list[str] = []
