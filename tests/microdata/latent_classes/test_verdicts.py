"""What the chains disagree about must not be recommended."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.microdata.latent_classes.gibbs import MONITORS
from bayes_sdc.microdata.latent_classes.verdicts import KAPPA_SD, Facts, beside, judge

NAMES = (*MONITORS, "tau1", "tau2")
FINE = Facts(60_000, 0.2, 3000.0, 100.0, 0.03, 2.0, np.ones(5), np.full(5, 900.0), NAMES)


def test_chains_that_disagree_about_the_estimate_are_not_trusted() -> None:
    """R-hat of 1.35 of tau1 at 60,000 records of 10 keys, with a narrow interval."""
    rhat = np.array([2.9, 1.4, 1.0, 1.35, 1.31])
    facts = FINE._replace(rhat=rhat, ess=np.array([4.6, 8.0, 500.0, 9.8, 10.5]))
    assert FINE.trusted
    assert not facts.trusted
    chains = next(check for check in judge(facts) if check.key == "classes_chains")
    assert chains.verdict == "look"
    assert "tau1 (R-hat 1.350" in chains.reason
    assert "so it is not trusted" in chains.reason


def test_an_undefined_diagnostic_is_not_taken_for_agreement() -> None:
    rhat = np.array([1.0, 1.0, 1.0, np.nan, 1.0])
    assert not FINE._replace(rhat=rhat).trusted


@given(st.floats(0.0, 1.0))
def test_a_value_beyond_its_limit_is_not_written_as_the_limit(sd: float) -> None:
    """The standard deviation was 0.27, the limit 0.27, and the verdict look."""
    for told in (beside(sd, KAPPA_SD, ".2f"), beside(KAPPA_SD + sd * 1e-3, KAPPA_SD, ".2f")):
        assert told.replace(".", "").isdigit()
    by_hand = beside(sd, KAPPA_SD, ".2f")
    assert (float(by_hand) == KAPPA_SD) is (format(sd, ".6f") == format(KAPPA_SD, ".6f"))
    check = judge(FINE._replace(kappa_sd=0.2712))[3]
    assert "0.271; the limit is 0.27" in check.reason
    assert check.verdict == "look"
