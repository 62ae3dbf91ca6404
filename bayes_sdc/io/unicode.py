"""Texts that no file can hold; light, because every command asks before it loads anything."""

from bayes_sdc.errors import InputError


def refuse_no_unicode(what: str, text: str) -> None:
    r"""Refuse a text that no file can hold: bytes of a shell that are no UTF-8 become surrogates.

    Parameters
    ----------
    what : str
        Where the text comes from, for the message.
    text : str
        The text.

    Raises
    ------
    InputError
        With the first place that cannot be encoded.

    Examples
    --------
    >>> refuse_no_unicode("--out", "r\xe9sultats")
    >>> refuse_no_unicode("--weight", "w\udcff")
    Traceback (most recent call last):
    ...
    bayes_sdc.errors.InputError: --weight 'w\udcff' is not valid UTF-8 from sign 2 on; ...
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} {text!r} is not valid UTF-8 from sign {error.start + 1} on; type it again in "
            "a terminal of UTF-8, or rename what it names"
        ) from None
