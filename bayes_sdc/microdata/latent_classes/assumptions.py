"""What an estimate by latent classes assumes of a file, in sentences."""

from bayes_sdc.microdata.file.microdata import Microdata

SAMPLED_WHOLE = (
    "assumed: households are in the sample whole. The rest of a record's household says nothing of "
    "how rare it is, and is left out where its risk is estimated"
)
SAMPLED_ALONE = (
    "assumed: people are in the sample or not one by one. Where households are sampled, the risk "
    "of their members reads too low unless the file is read with its households"
)


def assumed(data: Microdata, rules: int, *, unequal: bool) -> tuple[str, ...]:
    """Say what an estimate takes for granted.

    ``rules`` structural zeros were given; ``unequal`` tells whether weights or strata differ.
    """
    notes = [
        "assumed: levels of a key that are next to each other, by number where all begin with one "
        "and by their text otherwise, may be alike; combinations scatter about the classes "
        "independently of each other",
        SAMPLED_WHOLE if data.household is not None else SAMPLED_ALONE,
    ]
    if rules:
        notes.append(
            f"{rules:,} structural zeros: their combinations have probability 0, and the classes "
            "are learned with the impossible records that must have been left out"
        )
    if unequal:
        notes.append(
            "weights differ: how many people a record stands for follows from its key values, by a "
            "regression on all weights; how much a combination scatters goes with the records that "
            "are expected in it"
        )
    if data.missing != "own" and bool((data.codes < 0).any()):
        notes.append(
            "missing values are summed over: a record with one counts as any combination it may "
            "be; the scatter is learned from the complete records"
        )
    return tuple(notes)
