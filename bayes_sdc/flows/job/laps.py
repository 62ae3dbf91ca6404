"""Wall time of each stage of a job, and what is left by the forecast."""

from time import monotonic

from bayes_sdc.flows.fit.forecast import duration
from bayes_sdc.progress import say

LONG = 60.0  # seconds left from which a line is shown


class Laps:
    """Clock of a job: times each stage, and says at its end what is left."""

    def __init__(self, expected: dict[str, float | None]) -> None:
        self.seconds: dict[str, float] = {}
        self._expected = dict(expected)
        self._clock = monotonic()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = monotonic()
        self.seconds[stage], self._clock = now - self._clock, now
        if stage in self._expected:
            del self._expected[stage]
            left = sum(time or 0.0 for time in self._expected.values())
            if left > LONG:  # for a short rest the progress of the step says enough
                say(f"by the forecast about {duration(left)} left: {', '.join(self._expected)}")
