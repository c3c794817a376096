"""A clock of an audit: seconds pass when something waits or works, and it can be set."""

NOON = 1_800_000_000.0  # Unix seconds when an audit begins


class VirtualClock:
    """What a device reads of time."""

    def __init__(self) -> None:
        self._passed, self._set_by = 0.0, 0.0

    def wall(self) -> float:
        """Unix seconds, as the device's clock shows them."""
        return NOON + self._passed + self._set_by

    def steady(self) -> float:
        """Seconds since the beginning, whatever the clock was set to."""
        return self._passed

    def sleep(self, seconds: float) -> None:
        """The device waits."""
        self._passed += seconds

    def works(self, seconds: float) -> None:
        """The device is busy so long."""
        self._passed += seconds

    def is_set_by(self, seconds: float) -> None:
        """Somebody sets the device's clock."""
        self._set_by += seconds

    def ended_at(self, steady: float) -> None:
        """What was being done was ended then."""
        self._passed = steady
