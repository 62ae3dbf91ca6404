"""The first page of the public report on records."""

from typing import Any

from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.microdata.treatment.result import METHODS, Treatment
from bayes_sdc.microdata.treatment.utility import TreatedUtility
from bayes_sdc.report.contents import NOT_JUDGED
from bayes_sdc.report.figures import Figure, listed
from bayes_sdc.report.microdata.page_one import HARM, OTHER_KNOWLEDGE
from bayes_sdc.report.microdata.public import (
    PUBLIC_RECORDS,
    public_check,
    public_interval,
    public_share,
)
from bayes_sdc.report.microdata.treated_words import (
    Treated,
    after_what,
    before_and_after,
    before_in,
    good_for,
    measured_of,
)
from bayes_sdc.report.microdata.trust import why_not
from bayes_sdc.report.rounding import two_figures


def external_page_one(result: Measurement, treated: Treated | None) -> dict[str, Any]:
    """First page for the public; shares in whole per cents, and none for few records."""
    data, n = result.data, result.data.n
    records = f"about {two_figures(n):,}" if n >= PUBLIC_RECORDS else f"fewer than {PUBLIC_RECORDS}"
    of_population = (
        ", which counts as the whole population"
        if result.whole_population
        else ", a sample of a larger population"
    )
    as_it_is = "" if treated else ", as it is: this report measures it and changes nothing"
    answers = [
        (
            "What the file is",
            f"A file of {records} persons{of_population}{as_it_is}. Its key variables, which "
            f"somebody could know of a person and find in the file, are {', '.join(data.keys)}.",
        ),
        (
            f"What an intruder could do{measured_of(treated)}",
            _public_risk(result),
        ),
    ]
    if treated is not None:
        answers.append(("What was treated", _public_treatment(*treated)))
    answers.append(("What was not judged", f"{OTHER_KNOWLEDGE} {HARM}"))
    return {"page_one": answers, "figures": _public_figures(result, treated)}


def _public_risk(result: Measurement) -> str:
    n, found = result.data.n, result.latent_classes
    if n < PUBLIC_RECORDS:
        return "Not shown: shares of so few records could reveal single ones."
    if result.whole_population:
        return (
            "Anyone who guesses a record from the key values is right in "
            f"{public_share(result.risk.global_risk, n)} of all cases, and certain of "
            f"{public_share(result.data.sample_uniques / n, n)} of the records: nobody else has "
            "their values."
        )
    if found is None:
        share = public_interval(result.worst.expected, n)
        return f"Anyone who guesses a record from the key values is right in {share} of all cases."
    claims = ""
    if found.uniques >= PUBLIC_RECORDS:
        share = public_share(found.tau2.value / found.uniques, found.uniques)
        claims = f"in {share} of such claims, "
    doubt = why_not(found, public=True)
    return (
        (f"The estimates here are not to be relied on: {doubt}. " if doubt else "")
        + "Somebody who knows the key values of a person, and not whether they are in the file, "
        "can find their record for certain only if nobody else in the population has these values, "
        "and all are recorded rightly. "
        f"Nobody else has them for {public_interval(found.tau1, n)} of the records. Somebody who "
        "knows that the person is in the file is as certain wherever a record is alone in it: "
        f"{public_share(found.uniques / n, n)} of the records. Anyone who takes every record that "
        f"is alone in the file for that of the person they look for is right {claims}for "
        f"{public_interval(found.tau2, n)} of all records. Intervals are 90 % intervals."
    )


def _public_treatment(done: Treatment, use: TreatedUtility) -> str:
    n = done.data.n
    before, after = (public_share(one.expected.value / n, n) for one in (done.before, done.after))
    how_much = (
        f"{_what_changed(done)} Right matches were {before} of the records {before_in(done)}, and "
        f"are {after} {after_what(done)}."
        if n >= PUBLIC_RECORDS
        else f"The file was {_how(done)}. How many records that changed, and what it took from the "
        "risk, is not shown: there are too few."
    )
    beside = (
        ""
        if done.recoded is None or done.only_recoded
        else " The detail that the coarser levels took away is not counted."
    )
    return f"{how_much} {good_for(done, use)}{beside}"


def _how(done: Treatment) -> str:
    """Say what was done to the file."""
    if done.recoded is None:
        return f"treated ({METHODS[done.method]})"
    keys = listed(list(done.recoded_keys), len(done.recoded_keys))
    recoded = f"recoded (coarser levels of {keys})"
    if done.method == "recoding":
        return recoded
    return f"{recoded} and then treated ({METHODS[done.method]})"


def _what_changed(done: Treatment) -> str:
    """Say what was done to the file, and to how many of its records."""
    n = done.data.n
    if done.recoded is None or done.method == "recoding":
        share = public_share(float(done.changed.mean()), n)
        return f"The file was {_how(done)}, in {share} of the records."
    return (
        f"The file was {_how(done)}; {public_share(float(done.recoded.any(axis=1).mean()), n)} of "
        f"the records have coarser levels, and {public_share(float(done.treated.mean()), n)} were "
        "treated."
    )


def _public_figures(result: Measurement, treated: Treated | None) -> list[Figure]:
    n, found = result.data.n, result.latent_classes
    if n < PUBLIC_RECORDS:
        return []
    figures = []
    if found is not None and treated is None:
        judged = (NOT_JUDGED, "") if found.trusted else ("look", "not to be relied on")
        words = "of the records are alone in file and population, 90 % interval"
        matched = "of the records are matched rightly among those alone in the file, 90 % interval"
        figures = [
            Figure(public_interval(found.tau1, n), words, *judged),
            Figure(public_interval(found.tau2, n), matched, *judged),
        ]
    if treated is not None:
        done = treated[0]
        before, after = done.before.expected, done.after.expected
        limit = next((one for one in result.checks if one.key == "limit_file_risk"), None)
        told = None if limit is None else public_check(limit)
        figures = [
            Figure(
                f"{public_share(before.value / n, n)} → {public_share(after.value / n, n)}",
                f"of the records matched rightly, {before_and_after(done)}",
                *((NOT_JUDGED, "") if told is None else (told.verdict, told.reason)),
            )
        ]
    return figures
