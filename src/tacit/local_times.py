"""Times that clocks showed somewhere: they are moments only with a time zone, and some are two moments or none."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from tacit.errors import InputError

LATEST = 4_102_444_800  # the year 2100 in seconds since 1970: nobody has typed then


def zone_called(name: str) -> tzinfo:
    """The time zone of a name, `UTC` or `Europe/Madrid`. Raises: InputError where this machine knows none."""
    if name == "UTC":
        return UTC  # needs no data on time zones
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:  # a path, a folder, a name that is none
        raise InputError(
            f"the time zone {name!r:.60} is unknown here; give one like Europe/Madrid, or UTC (the package tzdata has "
            "them where the system has none)."
        ) from error


def moment_of(shown: datetime, zone: tzinfo) -> datetime:
    """The moment at which clocks of a zone showed a time without a zone.

    Raises: InputError where they showed it twice or never, as in the night in which they are changed.
    """
    first, second = (shown.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        never = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != shown
        raise InputError(
            f"clocks of {zone} showed {shown} {'never' if never else 'twice'}, as they were changed; write it with its "
            f"offset from UTC, {second.isoformat()} say."
        )
    return first
