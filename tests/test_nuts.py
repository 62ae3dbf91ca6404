"""NUTS is all or nothing."""

from typing import Any

import pytest

from bayes_sdc.nuts import sample_nuts


class Interrupted:
    """A sampler in the background whose user presses Ctrl-C."""

    cancelled = False

    def wait(self) -> None:
        raise KeyboardInterrupt

    def cancel(self) -> None:
        self.cancelled = True


def test_interrupted_chains_are_never_taken_for_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a file's risk rests on the draws up to Ctrl-C, and nothing says so."""
    background, asked = Interrupted(), {}

    def sample(compiled: object, **settings: Any) -> Interrupted:
        asked.update(settings)
        return background

    monkeypatch.setattr("nutpie.sample", sample)
    with pytest.raises(KeyboardInterrupt):
        sample_nuts("a model", draws=10)
    assert background.cancelled
    # when it blocks, nutpie itself turns Ctrl-C into the draws so far
    assert asked == {"draws": 10, "blocking": False, "progress_bar": False, "save_warmup": False}
