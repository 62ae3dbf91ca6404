"""The one error the package raises for input it cannot use."""


class InputError(ValueError):
    """The input cannot be used; the message says where, why and what to do."""
