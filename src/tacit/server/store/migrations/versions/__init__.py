"""The steps, in the order of their revisions."""

__all__: list[str] = []
