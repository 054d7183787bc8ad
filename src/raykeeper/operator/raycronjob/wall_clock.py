"""A clock on the wall of one time zone, moved on by calendar units as Go's `time` moves it. Pure.

Midnight may be missing or come twice where clocks change; each step here says what happens then.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

HOUR = timedelta(hours=1)


class WallClock:
    """A moment and what clocks show then. The first step of any kind sets the smaller units to zero."""

    def __init__(self, moment: datetime, zone: tzinfo) -> None:
        self._zone = zone
        self._is_moved = False
        self._set(moment)

    @classmethod
    def after(cls, moment: datetime, zone: tzinfo) -> WallClock:
        """The next whole second."""
        return cls(moment.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1), zone)

    def to_next_month(self) -> None:
        """The first of the next month, at the time of day that it is, which is midnight after the first step."""
        if self._starts_moving():
            self._set_wall(self._naive().replace(day=1, hour=0, minute=0, second=0))
        naive = self._naive()
        first = naive.replace(year=naive.year + naive.month // 12, month=naive.month % 12 + 1, day=1)
        self._set_wall(first + timedelta(days=naive.day - 1))

    def to_next_day(self) -> None:
        """Midnight of the next day; where clocks skip it, the first hour of that day."""
        if self._starts_moving():
            self._set_wall(self._naive().replace(hour=0, minute=0, second=0))
        self._set_wall(self._naive() + timedelta(days=1))
        hour = self.wall.hour
        if hour > 12:
            self._set(self.moment + (24 - hour) * HOUR)
        elif hour > 0:
            self._set(self.moment - hour * HOUR)

    def to_next_hour(self) -> None:
        """An hour later, whatever clocks show then."""
        if self._starts_moving():
            self._set_wall(self._naive().replace(minute=0, second=0))
        self._set(self.moment + HOUR)

    def to_next_minute(self) -> None:
        if self._starts_moving():
            self._set(self.moment.replace(second=0))
        self._set(self.moment + timedelta(minutes=1))

    def _starts_moving(self) -> bool:
        is_first, self._is_moved = not self._is_moved, True
        return is_first

    def _set(self, moment: datetime) -> None:
        self.moment = moment
        self.wall = moment.astimezone(self._zone)

    def _naive(self) -> datetime:
        return self.wall.replace(tzinfo=None, fold=0)

    def _set_wall(self, naive: datetime) -> None:
        """The moment at which clocks show this; of two, or of none, the one that Go's `time.Date` takes."""
        as_if_utc = naive.replace(tzinfo=UTC)
        offset = self._offset(as_if_utc)
        if offset:
            offset = self._offset(as_if_utc - offset)
        self._set(as_if_utc - offset)

    def _offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self._zone).utcoffset() or timedelta()
