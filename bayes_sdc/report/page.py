"""A report as one HTML document that needs no other file."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render_page(template: str, context: Mapping[str, Any]) -> str:
    """Fill a template of this folder; a name that is not in the context is an error."""
    loader = PackageLoader("bayes_sdc", "report")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, _, _ = loader.get_source(environment, "style.css")
    page = environment.get_template(template)
    return page.render(context, style=Markup(style)) + "\n"  # noqa: S704
