"""Lengths of time as people write them."""

import math
import re

from protocon.errors import ConfigError

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(min|[smhd])", re.IGNORECASE)


def parse_duration(value: object) -> object:
    """Seconds from `90s`, `20m`, `2h` or `1h30m`; anything but text is left as it is."""
    if not isinstance(value, str):
        return value
    parts = _PART.findall(value)
    if not parts or _PART.sub("", value).strip():
        raise ConfigError(f"{value!r} is not a length of time; expected such as 90s, 20m, 2h or 1h30m")
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)


def show_duration(seconds: float) -> str:
    """`45 s`, `20 min`, `2 h 5 min`."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
