"""The retention policy that the settings make, with where each value came from (FORMAT.md 5 and 8)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from gemnb.store.settings import Settings

PREFIX = "general.sessionRetention."
DEFAULT_MINIMUM = timedelta(days=1)
SETTLED = timedelta(minutes=5)
"""What was changed within this time may be in use; it stays."""
_AGE = re.compile(r"([0-9]+)([hdwm])")
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 720}
_LONGEST = timedelta(days=999_999)


@dataclass(frozen=True, slots=True)
class Policy:
    """What may go: older than `max_age`, or beyond the newest `max_count`; never younger than `minimum`."""

    enabled: bool
    max_age: timedelta | None
    max_count: int | None
    minimum: timedelta
    sources: tuple[tuple[str, str], ...] = ()
    """Each value, and where it came from."""

    def __str__(self) -> str:
        return "; ".join(f"{value} ({source})" for value, source in self.sources)


def policy_of(settings: Settings) -> tuple[Policy, str | None]:
    """The policy that the settings make, and why cleaning as a whole is off where they make no sense."""
    told = {name: settings.get(PREFIX + name) for name in ("enabled", "maxAge", "maxCount", "minRetention")}
    enabled, age, count, least = (told[name].value for name in told)
    minimum = parse_age(least) if isinstance(least, str) else None
    max_age = parse_age(age) if isinstance(age, str) and age else None
    max_count = count if isinstance(count, int) and not isinstance(count, bool) else None
    policy = Policy(
        enabled is True,
        max_age,
        max_count,
        minimum or DEFAULT_MINIMUM,
        tuple(
            (
                f"{name} = {setting.value!r}",
                setting.source if name != "minRetention" or minimum else "not understood: 1d",
            )
            for name, setting in told.items()
        ),
    )
    if enabled is False:
        return policy, None
    if settings.problems:  # the file that cannot be read may be the one that says to keep everything
        return policy, settings.problems[0]
    return policy, _problem(policy, enabled, age, count)


def _problem(policy: Policy, enabled: object, age: object, count: object) -> str | None:
    if enabled is not True:
        return f"sessionRetention.enabled is {enabled!r}; give true or false."
    if not isinstance(age, str | None):
        return f'sessionRetention.maxAge is {age!r}; give a text such as "30d".'
    if age and policy.max_age is None:
        return f'sessionRetention.maxAge is {age!r}; give a number and one of h, d, w, m, such as "30d".'
    if count is not None and policy.max_count is None:
        return f"sessionRetention.maxCount is {count!r}; give a whole number."
    if policy.max_count is not None and policy.max_count < 1:
        return f"sessionRetention.maxCount is {count!r}; give 1 or more."
    if policy.max_age is None and policy.max_count is None:
        return "sessionRetention has neither maxAge nor maxCount; give one of them."
    if policy.max_age is not None and policy.max_age < policy.minimum:
        return f"sessionRetention.maxAge ({age}) is shorter than minRetention; give a longer one."
    return None


def parse_age(text: str) -> timedelta | None:
    """An age such as `30d`: ASCII digits and one of h, d, w, m (a month is 30 days), more than 0; else None."""
    match = _AGE.fullmatch(text)
    digits = match[1].lstrip("0") if match else ""
    if match is None or not digits:
        return None
    hours = int(digits[:15]) * _HOURS[match[2]]
    return min(timedelta(hours=hours), _LONGEST) if hours < _LONGEST.days * 24 else _LONGEST
