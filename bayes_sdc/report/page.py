"""A report as one HTML document that needs no other file."""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bayes_sdc.report.words import words_of_page


def render_page(template: str, context: Mapping[str, Any]) -> str:
    """Fill a template of this folder; a name that is not in the context is an error.

    The page carries a policy (CSP) that lets the browser run the one script of this folder and
    load nothing, whatever the data hold.

    Raises
    ------
    RuntimeError
        If a figure holds no picture.
    """
    script = _inline("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _templates().get_template(template)
    context = {**context, **words_of_page(context)}
    text = page.render(context, style=_inline("style.css"), script=script, script_hash=digest)
    for figure in re.split("<figure[^>]*>", text)[1:]:
        if "<svg " not in figure.partition("</figure>")[0]:
            raise RuntimeError("a figure of the report holds no picture")
    return text + "\n"


@cache
def _templates() -> Environment:
    """Templates of this folder; cached, because compiling them takes longer than filling one."""
    templates = Environment(
        loader=PackageLoader("bayes_sdc", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["breakable"] = _breakable
    return templates


def _breakable(value: object) -> Markup:
    """Escape a value whose long names may break after an underscore, and so not in mid-word."""
    return Markup("_<wbr>").join(str(value).split("_"))


@cache
def _inline(name: str) -> Markup:
    """Text of a style sheet or script of this folder."""
    source = resources.files("bayes_sdc.report").joinpath(name).read_text(encoding="utf-8")
    return Markup("\n".join(source.splitlines()))  # noqa: S704 - a file of this folder


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Say that no file was touched where a report cannot be made."""
    try:
        yield
    except Exception as error:
        error.add_note("The report could not be made whole, so nothing was written.")
        raise
