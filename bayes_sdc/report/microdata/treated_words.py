"""What page one says of a treatment: what was done, of which file each number is, and its price."""

from bayes_sdc.microdata.treatment.result import METHODS, Treatment
from bayes_sdc.microdata.treatment.utility import TreatedUtility
from bayes_sdc.report.figures import listed
from bayes_sdc.report.microdata.numbers import count, wide

Treated = tuple[Treatment, TreatedUtility]


def measured_of(treated: Treated | None) -> str:
    """Say what was measured of a file that was treated: what it was before.

    Recoding comes before the measurement.
    """
    if treated is None:
        return ""
    done = treated[0]
    if done.recoded is None:
        return " before the treatment"
    return " with the recoded file" + ", before the treatment" * (not done.only_recoded)


def before_in(done: Treatment) -> str:
    """Say of which file the risk before is."""
    if done.before_recoded:
        return "in the recoded file (the file as it came was not measured)"
    return "before the recoding" if done.recoded is not None else "before the treatment"


def after_what(done: Treatment) -> str:
    """Say of which file the risk after is, behind :func:`before_in`."""
    if done.before_recoded:
        return "after the treatment"
    return "after it" if done.recoded is None or done.only_recoded else "after both"


def before_and_after(done: Treatment) -> str:
    """Say the same of two numbers."""
    if done.recoded is None:
        return "before and after the treatment"
    if done.before_recoded:
        return "in the recoded file and after the treatment"
    if done.only_recoded:
        return "before and after the recoding"
    return "before the recoding and after both recoding and treatment"


def tell_treated(treated: Treated | None) -> str:
    """Say what was done, what is left of the risk, and what the file is good for."""
    if treated is None:
        return "Nothing: this run measures the file and changes nothing in it."
    done, use = treated
    done_to = (
        f"{int(done.treated.sum()):,} of {done.data.n:,} records, in "
        f"{listed(list(done.treated_keys), 8) or 'no key'}: {METHODS[done.method]}."
    )
    if done.recoded is not None:
        recoded = (
            f"{int(done.recoded.any(axis=1).sum()):,} of {done.data.n:,} records have coarser "
            f"levels of {listed(list(done.recoded_keys), 8)}."
        )
        done_to = recoded if done.only_recoded else f"{recoded} Then {done_to}"
    known = "" if done.only_recoded else (
        f", and {count(done.strongest.expected.value)} for an intruder who knows which records "
        "were treated"
    )  # fmt: skip
    return (
        f"{done_to} Right matches were {count(done.before.expected.value)} {before_in(done)}, and "
        f"are {wide(done.after.expected)} {after_what(done)}{known}. {good_for(done, use)} "
        + " ".join(f"{note[0].upper()}{note[1:]}." for note in done.notes)
    ).rstrip()


def good_for(done: Treatment, use: TreatedUtility) -> str:
    """Say what the file is good for; a file that was only recoded was compared with nothing."""
    good = [one.use for one in use.good_for if one.good]
    bad = [one.use for one in use.good_for if one.good is False]
    if done.only_recoded:
        lost = f" It is not good for {listed(bad, len(bad))}." if bad else ""
        return (
            "What the file stays good for was not judged: the detail that the coarser levels took "
            f"away is not measured here.{lost}"
        )
    start = "The" if done.recoded is None else "Beside the recoded file, the"
    return (
        f"{start} file stays good for "
        f"{listed(good, len(good)) or 'nothing that was measured'}; it is not good for "
        f"{listed(bad, len(bad)) or 'nothing that was measured'}."
    )
