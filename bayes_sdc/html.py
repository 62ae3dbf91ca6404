"""Results as a small table in a notebook."""

from collections.abc import Iterable

from markupsafe import Markup, escape


def facts_table(
    caption: str, facts: Iterable[tuple[str, object, str]], notes: Iterable[str] = ()
) -> str:
    """Make an HTML table of names, values and what they mean; every text is escaped.

    Parameters
    ----------
    caption : str
        What the table is about.
    facts : iterable of (str, object, str)
        Name, value and definition of each fact.
    notes : iterable of str
        Lines below the table.

    Examples
    --------
    >>> facts_table("<b>", [("n", 3, "rows & more")])[:36]
    '<table><caption>&lt;b&gt;</caption><'
    """
    row = Markup(
        '<tr><th style="text-align:left">{}</th><td style="text-align:right">{}</td>'
        '<td style="text-align:left">{}</td></tr>'
    )
    rows = Markup().join(row.format(*fact) for fact in facts)
    listed = Markup().join(Markup("<li>{}</li>").format(note) for note in notes)
    below = Markup("<ul>{}</ul>").format(listed) if listed else ""
    return str(
        Markup("<table><caption>{}</caption><tbody>{}</tbody></table>{}").format(
            escape(caption), rows, below
        )
    )
