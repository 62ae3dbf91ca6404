"""What the methods for sample uniques are, in a few words: a board knows none of their names."""

BY_SIZES = "which knows only how many combinations have each size"
BY_FREQUENCIES = "which knows only how often combinations occur"
MEANINGS = {
    "model": BY_FREQUENCIES,
    "log-linear": "which takes the keys as independent but for some pairs",
    "independence": "which takes the keys as unrelated",
    "Lancaster": "which knows only how pairs of keys go together",
    "Lancaster, cross-validated": "which knows only how pairs of keys go together",
    "DIS-SUDA": "which compares uniques with pairs in the file",
    "Ewens": BY_SIZES,
    "Pitman": BY_SIZES,
    "Poisson-gamma": BY_SIZES,
    "Zayatz": BY_SIZES,
    "Cohen-Sackrowitz": "for which all tables of the population are equally likely",
    "individual risk": "which knows only the weights",
}


def named(method: str) -> str:
    """Return the name of a method of the comparison with what it is.

    Parameters
    ----------
    method : str
        As in the table of methods, with ", uniques" or without.

    Examples
    --------
    >>> named("Zayatz")
    'by Zayatz, which knows only how many combinations have each size'
    >>> named("model uncertain, uniques")
    'by the model uncertain, which knows only how often combinations occur'
    """
    name = method.removesuffix(", uniques")
    kind = "model" if name.startswith("model ") else name
    shown = f"the {name}" if kind == "model" else name
    meaning = MEANINGS.get(kind)
    return f"by {shown}" if meaning is None else f"by {shown}, {meaning}"
