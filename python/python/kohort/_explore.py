"""What several values of k would cost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import _kohort
from ._errors import InputError, Report
from ._html import curves, page, table
from ._progress import Progress
from ._spec import Spec, _listed
from ._words import Algorithm, Names


@dataclass(frozen=True)
class Run:
    """One release that was made, verified, measured and dropped."""

    #: The k that was asked for.
    k: int
    #: What was reached: ``k``, ``algorithm``, ``highest_risk``, ``average_risk``, ``classes``, ``persons``, ``suppressed``, ``loss``,
    #: ``notes``. None if the requirement can't be reached.
    achieved: dict[str, Any] | None
    #: Why the requirement can't be reached.
    unreachable: str | None


@dataclass(frozen=True)
class Series:
    """Runs that differ in k alone, by ascending k."""

    algorithm: str
    max_suppressed: float
    #: The quasi column that is left out of the release.
    dropped: str | None
    runs: tuple[Run, ...]
    #: The k of the run at the knee: up to it, a little loss saves much risk. None if the series has no knee.
    knee: int | None


@dataclass(frozen=True)
class Explored:
    """What several releases would cost. A notebook shows a table and a plot of risk against loss."""

    series: tuple[Series, ...]
    #: Blatant risks that some run found. A release with such a risk is refused, unless the risk is accepted.
    risks: tuple[Report, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict for each run that reached its k, as a DataFrame takes them."""
        rows = []
        for series in self.series:
            said = {"algorithm": series.algorithm, "max_suppressed": series.max_suppressed, "dropped": series.dropped}
            for run in series.runs:
                if run.achieved is not None:
                    figures = {name: value for name, value in run.achieved.items() if name not in ("k", "algorithm", "notes")}
                    rows.append({**said, "k": run.k, "reached": run.achieved["k"], **figures, "knee": run.k == series.knee})
        return rows

    @property
    def svg(self) -> str:
        """The plot of risk against loss, one point per k."""
        return curves("Risk against loss, one point per k", "highest risk", "loss", [self._curve(each) for each in self.series])

    def _name(self, series: Series) -> str:
        dropped = f", without {series.dropped}" if series.dropped is not None else ""
        if series.dropped is None and any(other.dropped is not None for other in self.series):
            dropped = ", all columns"
        share = f"{series.max_suppressed:.4f}".rstrip("0").rstrip(".")
        return f"algorithm {series.algorithm}{dropped}, max_suppressed {share}"

    def _curve(self, series: Series) -> tuple[str, list[tuple[float, float, str, bool]]]:
        points = []
        for run in series.runs:
            if run.achieved is not None:
                is_knee = run.k == series.knee
                label = f"k = {run.k}, knee" if is_knee else str(run.k)
                points.append((run.achieved["highest_risk"], run.achieved["loss"], label, is_knee))
        return self._name(series), points

    def _repr_html_(self) -> str:
        names = ("highest_risk", "average_risk", "classes", "suppressed", "loss")
        header = ("k", "reached", *(name.replace("_", " ") for name in names), "")
        parts = ["<p><b>Exploration</b>: each line is a verified release, and none was kept</p>"]
        for series in self.series:
            rows: list[tuple[Any, ...]] = []
            for run in series.runs:
                if run.achieved is None:
                    rows.append((run.k, None, *(None for _ in names), run.unreachable))
                else:
                    figures = (run.achieved[name] for name in names)
                    rows.append((run.k, run.achieved["k"], *figures, "knee" if run.k == series.knee else ""))
            parts += [f"<p>{_escaped(self._name(series))}</p>", table(header, rows)]
        parts.append(f"<figure>{self.svg}</figure>")
        parts += [f'<p class="no">a release would be refused: {_escaped(risk.message)}</p>' for risk in self.risks]
        return page("".join(parts))


@_listed
def explore(
    data: Any,
    *,
    k: int | Iterable[int] | None = None,
    steps: int | None = None,
    max_suppressed: float | Iterable[float] | None = None,
    algorithms: Algorithm | Iterable[Algorithm] = (),
    drop_columns: Names = (),
    threads: int | None = None,
    progress: Progress = None,
    **asked: Any,
) -> Explored:
    """Shows what several values of k would cost. Each run is a verified release; only its figures are kept.

    ``data`` is a :class:`Spec`, the path of a spec file, or what :func:`anonymize` takes, with the same parameters. ``k`` is a list
    or a range; with ``steps`` so many values of a range are taken, each about the same factor above the one before it. There is one
    series of runs for each share of ``max_suppressed``, each of ``algorithms``, and each quasi column of ``drop_columns``, beside
    those with all columns.

    >>> import kohort
    >>> found = kohort.explore("examples/clinic/release.toml", k=[5, 20], algorithms="mondrian")
    >>> [run.achieved["k"] >= run.k for run in found.series[0].runs]
    [True, True]
    """
    if k is None:
        raise TypeError("k is missing, and there is no default: name the values of k to explore, as in k=[2, 5, 10]")
    shares = () if max_suppressed is None else max_suppressed
    if isinstance(data, Spec) or (isinstance(data, (str, os.PathLike)) and os.fspath(data).endswith(".toml")):
        given = [name for name, value in asked.items() if value is not None]
        if given:
            raise TypeError(f"{', '.join(given)}: the spec says it already")
        spec = data if isinstance(data, Spec) else Spec.from_toml(data)
    else:
        # The k of the spec does not count, because each run has one of its own.
        spec = Spec(data, k=1, **asked)
    return spec.explore(
        k,
        steps=steps,
        max_suppressed=shares,
        algorithms=algorithms,
        drop_columns=drop_columns,
        threads=threads,
        progress=progress,
    )


def explored(
    job: _kohort.Job,
    k: int | Iterable[int],
    steps: int | None,
    max_suppressed: float | Iterable[float],
    algorithms: str | Iterable[str],
    drop_columns: list[str],
    threads: int | None,
    hook: Any,
) -> Explored:
    """Runs an exploration."""
    shares = list(max_suppressed) if isinstance(max_suppressed, Iterable) else [max_suppressed]
    words = [algorithms] if isinstance(algorithms, str) else list(algorithms)
    found = json.loads(_kohort.explore(job, values_of_k(k, steps), shares, words, drop_columns, threads, hook))
    series = [
        Series(
            algorithm=each["algorithm"],
            max_suppressed=each["max_suppressed"],
            dropped=each["dropped"],
            runs=tuple(Run(run["k"], run["achieved"], run.get("unreachable")) for run in each["runs"]),
            knee=each["knee"],
        )
        for each in found["series"]
    ]
    return Explored(tuple(series), tuple(Report(risk["message"], risk["hint"]) for risk in found["risks"]))


def values_of_k(k: int | Iterable[int], steps: int | None) -> list[int]:
    """The values of k that are tried: all of them, or so many of a range."""
    values = [int(value) for value in k] if isinstance(k, Iterable) else [int(k)]
    wrong = [value for value in values if not 1 <= value < 1 << 32]
    if wrong:
        raise InputError([(f"k={wrong[0]}: no k", "give whole numbers from 1 on")])
    if steps is None:
        return values
    if not isinstance(k, range) or steps < 2:
        raise TypeError("steps is for a range of k, and at least 2: k=range(2, 101), steps=8")
    if len(values) <= steps:
        return values
    first, last = values[0], values[-1]
    return [int(first * (last / first) ** (step / (steps - 1)) + 0.5) for step in range(steps)]


def _escaped(text: str) -> str:
    import html

    return html.escape(text)
