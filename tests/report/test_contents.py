"""Sections and public sentences follow the key of a check, whatever it is called."""

import dataclasses

import pytest

from bayes_sdc import Protection
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.report.contents import OTHER, checks_by_section
from bayes_sdc.report.flows import render as flows
from bayes_sdc.report.flows.public_reasons import tell_check
from bayes_sdc.report.flows.public_shares import PublicShares
from bayes_sdc.report.microdata import render as microdata
from bayes_sdc.report.microdata.public import public_check
from bayes_sdc.report.policy_limits import PUBLIC_REASON


@pytest.mark.parametrize("job", ["flows", "microdata"])
def test_a_retitled_check_keeps_its_section_and_its_public_sentence(
    job: str, large: Protection, measured: Measurement
) -> None:
    """Better words must not send a check to "Other checks", with a sentence that says nothing."""
    result = large if job == "flows" else measured
    sections = flows.SECTIONS if job == "flows" else microdata.SECTIONS
    shares = PublicShares(1)
    tell = (lambda c: tell_check(c, large, shares)) if job == "flows" else public_check
    assert len({check.key for check in result.checks}) == len(result.checks) > 2
    for check in result.checks:
        retitled = dataclasses.replace(check, name="a better title")
        assert checks_by_section(sections, [retitled])[OTHER] == [], check.key
        told = tell(retitled)
        assert told.reason == tell(check).reason
        assert told.reason not in PUBLIC_REASON.values(), f"{check.key} tells the public nothing"
        assert told.name == "a better title"


@pytest.mark.parametrize("sections", [flows.SECTIONS, microdata.SECTIONS])
def test_a_key_stands_in_one_section(sections: dict[str, tuple[str, tuple[str, ...]]]) -> None:
    keys = [key for _, keys in sections.values() for key in keys]
    assert len(keys) == len(set(keys))
