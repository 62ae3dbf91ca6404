"""What the chains disagree about must not be recommended."""

import numpy as np

from bayes_sdc.microdata.latent_classes.verdicts import Facts, judge

NAMES = ("log likelihood", "plain P(F = 1)", "sum of g squared", "tau1", "tau2")
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
