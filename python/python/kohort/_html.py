"""What notebooks show: tables, charts and trees, on light and dark pages."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _kohort

# Colours come from the page, so that light and dark pages are readable alike.
_STYLE = """<style>
.kohort { max-width: 760px; }
.kohort table { border-collapse: collapse; font-size: inherit; margin: 0 0 12px 0; }
.kohort th, .kohort td { text-align: left; vertical-align: top; padding: 2px 14px 2px 0; border: 0; border-bottom: 1px solid rgba(127,127,127,.35); background: none; color: inherit; }
.kohort .n { text-align: right; font-variant-numeric: tabular-nums; }
.kohort p { margin: 0 0 8px 0; }
.kohort figure { margin: 0 0 14px 0; }
.kohort .no { font-weight: 600; }
.kohort details { margin-left: 18px; }
.kohort .leaf { margin-left: 34px; }
</style>"""

# Trees show so many nodes.
_MOST_NODES = 400


def page(content: str) -> str:
    return f'<div class="kohort">{_STYLE}{content}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table. Columns with a number stand at the right, and so do their names and everything else in them."""
    rows = list(rows)
    are_numbers = [any(_is_number(row[position]) for row in rows) for position in range(len(header))]
    head = "".join(_cell("th", name, is_number) for name, is_number in zip(header, are_numbers))
    lines = ("".join(_cell("td", cell, is_number) for cell, is_number in zip(row, are_numbers)) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def _cell(tag: str, cell: Any, is_number: bool) -> str:
    text = number(cell) if cell is None or _is_number(cell) else html.escape(str(cell))
    return f'<{tag} class="n">{text}</{tag}>' if is_number else f"<{tag}>{text}</{tag}>"


def number(value: float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:.4g}"


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def figure(svg: str) -> str:
    return f"<figure>{svg}</figure>"


def loss_chart(columns: Mapping[str, float]) -> str:
    bars = [(name, 100 * loss, percent(loss)) for name, loss in columns.items()]
    return figure(_kohort.bar_chart("Loss per column", "% of the column's range or values that a cell covers", bars))


def risk_chart(risk: Mapping[str, Mapping[str, float]]) -> str:
    unit = "% chance to find a person who is known to be in the table"
    pairs, bars = [], []
    for name in ("highest", "average"):
        before, after = risk[name].get("before"), risk[name]["after"]
        bars.append((name, 100 * after, percent(after)))
        if before is not None:
            pairs.append((name, (100 * before, percent(before)), (100 * after, percent(after))))
    if not pairs:
        # Somebody who knows the columns of one audience only does not find persons in the private table by all columns.
        return figure(_kohort.bar_chart("Risk", unit, bars))
    return figure(_kohort.pair_chart("Risk before and after", unit, ("private table", "release"), pairs))


def size_chart(smallest: Sequence[Sequence[int]], counted: str) -> str:
    if not smallest:
        return ""
    sizes = [(size, n) for size, n in smallest]
    title = "Class sizes" if len(sizes) < 10 else "Class sizes (the ten smallest)"
    return figure(_kohort.histogram(title, f"{counted} in a class", "classes", sizes))


def curves(title: str, x_unit: str, y_unit: str, named: Sequence[tuple[str, list[tuple[float, float, str, bool]]]]) -> str:
    """A plot of curves: each a name, and points with a label, which stand out if their last part is true."""
    return _kohort.curve_chart(title, x_unit, y_unit, list(named))


def tree_html(nodes: Sequence[Sequence[Any]], children: Mapping[Any, Sequence[int]]) -> str:
    parts: list[str] = []
    n_shown = 0

    # Without recursion, because a hierarchy may be deep.
    open_nodes: list[tuple[int, int] | None] = [(children[None][0], 0)]
    while open_nodes:
        item = open_nodes.pop()
        if item is None:
            parts.append("</details>")
            continue
        node, depth = item
        n_shown += 1
        if n_shown > _MOST_NODES:
            continue
        label, _, n_values = nodes[node]
        below = children.get(node, [])
        if not below:
            parts.append(f'<div class="leaf">{html.escape(label)}</div>')
            continue
        is_open = " open" if depth < 2 else ""
        parts.append(f"<details{is_open}><summary>{html.escape(label)} <small>({n_values})</small></summary>")
        open_nodes.append(None)
        open_nodes.extend((child, depth + 1) for child in reversed(below))
    if n_shown > _MOST_NODES:
        parts.append(f"<p>and {n_shown - _MOST_NODES} more labels</p>")
    return page("".join(parts))
