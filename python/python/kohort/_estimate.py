"""Estimates: what a reader learns from a release alone about the private table behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import _kohort
from ._folders import Folders
from ._html import page, table
from ._progress import Progress, reporting


class Figure(NamedTuple):
    """An estimated figure: what is expected if rows are spread evenly, and between which numbers it lies for certain."""

    expected: float
    #: None if nothing bounds it.
    least: float | None
    most: float | None


@dataclass(frozen=True)
class Estimate:
    """An estimate from a release alone."""

    #: Private rows that match.
    count: float
    #: Between which numbers the count of released rows that match lies for certain.
    least: float
    most: float
    #: All private rows.
    of: float
    #: Per sensitive column each value, None for null, and how many rows match and have it.
    sensitive: dict[str, dict[str | None, float]]
    #: The same with the bounds of each count.
    bounds: dict[str, dict[str | None, Figure]]
    #: Per sensitive column of numbers its ``mean``, ``lower_quartile``, ``median`` and ``upper_quartile``.
    numbers: dict[str, dict[str, Figure]]

    def _repr_html_(self) -> str:
        rows: list[tuple[Any, ...]] = [("rows that match", self.count, self.least, self.most)]
        rows += [(f"{name}: {what}", *figure) for name, of in self.numbers.items() for what, figure in of.items()]
        parts = [f"<p><b>Estimate</b> of {self.of:.0f} rows</p>", table(("", "expected", "at least", "at most"), rows)]
        for column, values in self.bounds.items():
            counts = [("null" if value is None else value, *figure) for value, figure in values.items()]
            parts.append(table((column, "expected", "at least", "at most"), counts))
        return page("".join(parts))


def estimate(
    release: Any,
    conditions: str = "",
    *,
    hierarchies: Mapping[str, Any] | None = None,
    continuous: bool = False,
    threads: int | None = None,
    progress: Progress = None,
) -> Estimate:
    """Estimates how many rows of the private table match conditions, and which sensitive values they have.

    ``release`` is a folder or a :class:`Release`. Conditions are joined by ``and``: ``=``, ``<``, ``<=``, ``>``, ``>=``,
    ``between .. and ..``, ``in (.., ..)``. Without conditions all rows match.
    """
    ((_, found),) = _estimates(release, conditions, None, hierarchies, continuous, threads, progress)
    return found


def estimate_by(
    release: Any,
    by: str,
    conditions: str = "",
    *,
    hierarchies: Mapping[str, Any] | None = None,
    continuous: bool = False,
    threads: int | None = None,
    progress: Progress = None,
) -> dict[str, Estimate]:
    """Like :func:`estimate`, once for each group of rows, by the name of the group.

    ``by`` is ``"sex"``, ``"age:10"`` for ranges of numbers, or ``"birth:month"``, ``"birth:year"`` or ``"birth:decade"``.
    """
    return dict(_estimates(release, conditions, by, hierarchies, continuous, threads, progress))


def _estimates(
    release: Any,
    conditions: str,
    by: str | None,
    hierarchies: Mapping[str, Any] | None,
    continuous: bool,
    threads: int | None,
    progress: Progress,
) -> list[tuple[str, Estimate]]:
    with Folders() as folders, reporting(progress) as hook:
        known = folders.hierarchies(hierarchies)
        found = _kohort.estimate(folders.of(release), conditions, known, by, continuous, threads, hook)
    return [(group, _estimate(each)) for group, each in json.loads(found)]


def _estimate(found: Mapping[str, Any]) -> Estimate:
    bounds = {
        column: {each["value"]: Figure(each["count"], each["least"], each["most"]) for each in values}
        for column, values in found["sensitive"].items()
    }
    return Estimate(
        count=found["count"],
        least=found["least"],
        most=found["most"],
        of=found["of"],
        sensitive={column: {value: figure.expected for value, figure in of.items()} for column, of in bounds.items()},
        bounds=bounds,
        numbers={column: {what: Figure(**figure) for what, figure in of.items()} for column, of in found["numbers"].items()},
    )
