"""Released tables as features of models.

A generalized cell such as ``[20,29]`` is an interval. A model can take its middle and its width, and learns from the width
how much the cell tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_RANGE = re.compile(r"^\[(.+?)[,;](.+)\]$")

#: A lowest and a highest number, both None where a cell could be anything.
Interval = tuple["float | None", "float | None"]


def interval(label: Any) -> Interval:
    """The bounds of a released cell: a number, a range, or ``*``.

    >>> interval("[20,29]"), interval("34"), interval("*")
    ((20.0, 29.0), (34.0, 34.0), (None, None))
    """
    if label is None or label == "*" or label != label:
        return None, None
    if isinstance(label, (int, float)):
        return float(label), float(label)
    text = str(label)
    found = _RANGE.match(text)
    low, high = found.groups() if found else (text, text)
    try:
        return float(low), float(high)
    except ValueError:
        raise ValueError("a label is neither a number nor a range of numbers: its column is no interval column") from None


def intervals(labels: Iterable[Any]) -> tuple[list[float | None], list[float | None]]:
    """The lowest and the highest numbers of released cells.

    >>> intervals(["[20,29]", "34", "*"])
    ([20.0, 34.0, None], [29.0, 34.0, None])
    """
    labels = list(labels)
    pairs = {label: interval(label) for label in dict.fromkeys(labels)}
    return [pairs[label][0] for label in labels], [pairs[label][1] for label in labels]


def features(table: Any, columns: Iterable[str] | None = None) -> Any:
    """A DataFrame of pandas in which interval columns are numbers.

    ``table`` is a release, or a released table. Every interval column ``age`` becomes ``age``, the middle of its cells, and
    ``age_width``, their widths. A cell that could be anything has the middle and the width of the whole column. Pairs of
    columns ``age_lo`` and ``age_hi`` are read the same way. Other columns stay as they are. Without ``columns``, every
    column is taken that has nothing but numbers, ranges and ``*``, and at least one range.
    """
    import pandas

    from ._release import Release

    if isinstance(table, Release):
        frame = table.to_pandas()
    elif isinstance(table, pandas.DataFrame):
        frame = table.copy()
    else:
        import pyarrow

        frame = pyarrow.table(table).to_pandas()
    out: dict[str, Any] = {}
    asked = None if columns is None else set(columns)
    for name in frame.columns:
        base = name[:-3]
        if name.endswith("_lo") and f"{base}_hi" in frame.columns and (asked is None or base in asked):
            low, high = frame[name], frame[f"{base}_hi"]
        elif name.endswith("_hi") and f"{base}_lo" in frame.columns and (asked is None or base in asked):
            continue
        elif (asked is None and _is_intervals(frame[name])) or (asked is not None and name in asked):
            base = name
            low, high = (pandas.Series(bound, index=frame.index) for bound in intervals(frame[name]))
        else:
            out[name] = frame[name]
            continue
        low, high = low.astype("float64"), high.astype("float64")
        low, high = low.fillna(low.min()), high.fillna(high.max())
        out[base] = (low + high) / 2
        out[f"{base}_width"] = high - low
    return pandas.DataFrame(out, index=frame.index)


def _is_intervals(column: Any) -> bool:
    labels = [label for label in column.unique() if isinstance(label, str)]
    if len(labels) != column.nunique(dropna=True) or not any(_RANGE.match(label) for label in labels):
        return False
    try:
        intervals(labels)
    except ValueError:
        return False
    return True
