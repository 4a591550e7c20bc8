"""Functions: check, verify, audit, suggest, anonymize, and their results."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from . import _kohort
from ._errors import InputError, Report
from ._folders import Folders
from ._html import page, percent, size_chart, table
from ._progress import Progress, reporting
from ._release import Release, _escaped, _sizes
from ._requirements import join
from ._sources import Source, source_of
from ._spec import Asked, Spec, _by_column, _listed, _name_of, _names, _size
from ._words import Cells, Columns, Names, Read, Verdict

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class Risks:
    """Where the risk of a table comes from. It names rows by number, so it is for those who have the table."""

    #: How much risk each quasi column adds, the most first: ``column``, ``adds``, ``k_without``, ``unique_without``,
    #: ``average_risk_without`` and ``suda_share``.
    columns: tuple[dict[str, Any], ...]
    #: Sets of few columns in which a row is unique: ``largest``, ``rows``, ``minimal_sets``, ``highest_score``. None if not asked for.
    suda: dict[str, Any] | None
    #: The risk among all persons that the table is a sample of: ``persons``, ``share``, ``alone_in_table``, ``alone`` by model,
    #: ``highest_risk``, ``average_risk``. None if not asked for.
    population: dict[str, Any] | None
    #: A column for each figure of a row, as a DataFrame takes them: ``row`` from 1, ``persons`` who look the same, ``risk``, and
    #: ``suda``, the score of the row, if asked for.
    records: dict[str, list[Any]] = field(repr=False)


@dataclass(frozen=True)
class Check:
    """What was counted in a table."""

    #: Persons in the smallest class.
    k: int
    #: Groups of rows with the same cells in all quasi columns.
    classes: int
    rows: int
    persons: int
    #: What a class is counted in: ``persons``, or ``rows``, each taken for a person.
    counted: str
    #: Persons who are alone in a class.
    unique_persons: int
    #: One over the size of the smallest class.
    highest_risk: float
    #: Mean over persons of one over the size of their class.
    average_risk: float
    #: The ten smallest class sizes, each with the number of classes of that size.
    class_sizes: dict[int, int]
    #: Per sensitive column its worst class, measure by measure: ``l``, ``entropy_l``, ``t``, ``alpha``, ``beta``, ...
    sensitive: dict[str, dict[str, float | None]]
    #: Requirements that are not met.
    unmet: tuple[Report, ...]
    #: Where the risk comes from, if that was asked for.
    risks: Risks | None = None
    #: The k that was asked, if any.
    asked_k: int | None = field(default=None, compare=False)

    @property
    def met(self) -> bool:
        """Whether everything that was asked holds."""
        return not self.unmet

    def _repr_html_(self) -> str:
        rows: list[tuple[Any, Any]] = [
            ("k (persons in the smallest class)", self.k),
            ("classes", self.classes),
            ("persons" if self.counted == "persons" else "rows, each counted as a person", self.persons),
            ("unique persons", self.unique_persons),
            ("highest risk", percent(self.highest_risk)),
            ("average risk", percent(self.average_risk)),
        ]
        parts = ["<p><b>Check</b></p>", table(("measure", "counted"), rows)]
        if self.sensitive:
            names = ("l", "entropy_l", "t", "alpha", "beta")
            measured = [(column, *(found.get(name) for name in names)) for column, found in self.sensitive.items()]
            parts.append(table(("worst class of", "l", "entropy l", "t", "alpha", "beta"), measured))
        if self.risks is not None:
            names = ("column", "adds", "k_without", "unique_without", "average_risk_without")
            header = tuple(name.replace("_", " ") for name in names)
            parts.append(table(header, [tuple(column[name] for name in names) for column in self.risks.columns]))
        parts.append(size_chart(list(self.class_sizes.items()), self.counted))
        parts += [f'<p class="no">not met: {_escaped(report.message)}</p>' for report in self.unmet]
        return page("".join(parts))


def check(
    data: Any,
    *,
    quasi: Names,
    sensitive: Columns = (),
    person: str | None = None,
    k: int | None = None,
    by_column: bool = False,
    suda: int | None = None,
    population: int | None = None,
    records: bool = False,
    read: Read | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Check:
    """Counts any table, also another tool's output: how alone people are, and what their classes tell.

    With ``by_column``, ``suda``, ``population`` or ``records``, ``risks`` says where the risk comes from: what each quasi column adds,
    and the risk of each row. ``suda`` also scores rows and columns by sets of up to so many quasi columns in which a row is unique, and
    unique in no smaller part; ``population`` is the number of persons that the table is a sample of, for the risk among them.

    ``read`` holds how a CSV file is read, such as ``{"decimal": ","}``. With ``memory``, such as ``"1GB"``, a table in a file may be
    larger than memory. Its rows wait on the disk, encrypted.

    >>> import kohort
    >>> found = kohort.check("examples/clinic/patients.csv", quasi=["sex", "occupation"], sensitive="diagnosis", k=5)
    >>> found.k, found.unique_persons, found.met
    (1, 1, False)
    >>> found.sensitive["diagnosis"]["l"]
    1
    """
    source = source_of(data)
    with_risks = by_column or records or suda is not None or population is not None
    if memory is not None and (with_risks or read):
        raise TypeError("with memory, by_column, suda, population, records and read are not there: count all of the table at once")
    for name, number in (("suda", suda), ("population", population)):
        if number is not None and not 0 <= number < 1 << 64:
            raise InputError([(f"{name}={number}: no such number", "give a whole number from 1 on")])
    columns: dict[str, dict[str, Any]] = {name: {"role": "quasi"} for name in _names(quasi, "quasi")}
    for name, asked in _by_column(sensitive, "sensitive").items():
        if name in columns:
            raise TypeError(f"column '{name}' is quasi and sensitive: keep one of them")
        columns[name] = {"role": "sensitive", **join(asked)}
    entry: dict[str, Any] = {"file": "-", "columns": columns, **_reading(read, source)}
    if person is not None:
        entry["person"] = person
    document = {"k": 1 if k is None else k, "tables": {"table": entry}}
    n_bytes = None if memory is None else _size(memory)
    with reporting(progress) as hook:
        text = _kohort.check(source.whole(), document, k is not None, n_bytes, with_risks, suda, population, threads, hook)
    found = json.loads(text)
    return Check(
        k=found["k"],
        classes=found["classes"],
        rows=found["rows"],
        persons=found["persons"],
        counted=found["counted"],
        unique_persons=found["unique_persons"],
        highest_risk=found["risk"]["highest"],
        average_risk=found["risk"]["average"],
        class_sizes=dict(_sizes(found)),
        sensitive=found["sensitive"],
        unmet=_reports(found["unmet"]),
        risks=_risks(found["risks"]) if with_risks else None,
        asked_k=k,
    )


def _reading(read: Read | None, source: Source) -> dict[str, Any]:
    """How a CSV file is read, as the keys of a table in a spec."""
    if read and not source.is_file:
        raise TypeError("read says how a CSV file is read, and this table is in memory: leave read out")
    return dict(read or {})


def _risks(found: Mapping[str, Any]) -> Risks:
    sizes, scores = found["persons"], found["scores"]
    records = {"row": list(range(1, len(sizes) + 1)), "persons": sizes, "risk": [1 / size for size in sizes]}
    return Risks(
        columns=tuple(found["columns"]),
        suda=found["suda"],
        population=found["population"],
        records=records if scores is None else {**records, "suda": scores},
    )


@dataclass(frozen=True)
class Verification:
    """What counting a release again showed.

    ``verdict`` is ``verified``; ``in_part``, if the given files and tables don't show everything that was asked; or ``not_met``.
    """

    verdict: Verdict
    #: Persons in the smallest class; None where the release does not tell which rows belong to the same person.
    k: int | None
    classes: int
    #: Per sensitive column its worst class, as far as the release tells it.
    sensitive: dict[str, dict[str, float | None]]
    #: Everything that was counted, as ``kohort verify --json`` prints it: tables, audiences, coalitions, ...
    counts: dict[str, Any] = field(repr=False)
    #: Everything that is wrong.
    wrong: tuple[Report, ...]
    #: What was asked and could not be counted, in words.
    not_counted: tuple[str, ...]
    #: Keys of the manifest that were taken from it, because they say how the release is to be read.
    taken: tuple[str, ...]
    #: Keys of the manifest that nothing at hand confirms or contradicts.
    unconfirmed: tuple[str, ...]
    manifest: dict[str, Any] = field(repr=False)

    @property
    def met(self) -> bool:
        """Whether nothing is wrong. Where the verdict is ``in_part``, see ``not_counted``."""
        return self.verdict != "not_met"

    def _repr_html_(self) -> str:
        k = f"at most {self.counts['k_at_most']}" if "k_at_most" in self.counts else self.k
        rows = [("verdict", self.verdict), ("k counted", k), ("classes", self.classes)]
        parts = ["<p><b>Verification</b></p>", table(("", "counted"), rows)]
        parts += [f'<p class="no">wrong: {_escaped(report.message)}</p>' for report in self.wrong]
        parts += [f"<p>not counted: {_escaped(words)}</p>" for words in self.not_counted]
        return page("".join(parts))


def verify(
    release: Any,
    *,
    against: Spec | str | os.PathLike[str] | None = None,
    tables: Mapping[str, Any] | None = None,
    k: int | None = None,
    applied_from: Any = None,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Verification:
    """Counts a release again, from its files and its manifest alone, or against the private tables of a spec.

    ``release`` is a folder, or a :class:`Release`, which is written to a temporary folder first. ``against`` is a spec or
    the path of one; ``tables`` gives frames for tables that it names as files, and ``k`` is the k that was used in place of that
    of the spec. ``applied_from`` is the release whose classes :func:`apply` gave to new persons: what both tell together is counted, too.
    With ``memory``, such as ``"1GB"``, the tables may be larger than memory: their rows wait on the disk, encrypted.
    """
    n_bytes = None if memory is None else _size(memory)
    if applied_from is not None and (against is not None or memory is not None):
        raise TypeError("applied_from counts two releases from their files: leave against and memory out")
    with reporting(progress) as hook:
        job = None
        if against is not None:
            spec = against if isinstance(against, Spec) else Spec.from_toml(against)
            # Parts of a table are read row by row, so that frames are better converted all at once.
            job, _ = spec._job(tables, threads, hook, by_column=memory is None)
            job = job.asking(k)
        elif k is not None:
            raise TypeError("k is the k that was used in place of that of a spec: name the spec with against=...")
        with Folders() as folders:
            earlier = None if applied_from is None else folders.of(applied_from)
            found = json.loads(_kohort.verify(folders.of(release), job, n_bytes, earlier, threads, hook))
    counts = found["findings"]
    return Verification(
        verdict=found["verdict"],
        k=counts["k"],
        classes=counts["classes"],
        sensitive=counts["sensitive"],
        counts=counts,
        wrong=_reports(found["wrong"]),
        not_counted=tuple(found["not_counted"]),
        taken=tuple(found["taken"]),
        unconfirmed=tuple(found["unconfirmed"]),
        manifest=found["manifest"],
    )


@dataclass(frozen=True)
class Audit:
    """What somebody learns who reads several releases of the same persons together.

    ``audiences`` has for each audience ``together`` and ``alone`` (a list, one per release), each with ``smallest``,
    ``classes``, ``unique_persons`` and ``below_k``. ``union`` is what all audiences together see.
    """

    persons: int
    persons_in_all: int
    audiences: dict[str, dict[str, Any]]
    union: dict[str, Any] | None
    unmet: tuple[Report, ...]

    @property
    def met(self) -> bool:
        """Whether everybody hides among k from every audience."""
        return not self.unmet

    def _repr_html_(self) -> str:
        rows = [(name, seen["together"]["smallest"], seen["together"]["unique_persons"]) for name, seen in self.audiences.items()]
        parts = ["<p><b>Audit</b></p>", table(("audience", "smallest class", "unique persons"), rows)]
        parts += [f'<p class="no">not met: {_escaped(report.message)}</p>' for report in self.unmet]
        return page("".join(parts))


def audit(
    releases: Iterable[Any],
    *,
    audiences: Mapping[str, Names],
    person: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    k: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Audit:
    """Reads several releases of the same persons together.

    ``releases`` are folders, files, frames or :class:`Release` objects. ``audiences`` says who may know which columns.
    """
    with Folders() as folders, reporting(progress) as hook:
        paths = [folders.of(release) for release in releases]
        known = [(name, _names(columns, "audience")) for name, columns in audiences.items()]
        found = json.loads(_kohort.audit(paths, known, folders.hierarchies(hierarchies), person, k, threads, hook))
    return Audit(
        persons=found["persons"],
        persons_in_all=found["persons_in_all"],
        audiences=found["audiences"],
        union=found["union"],
        unmet=_reports(found["unmet"]),
    )


@dataclass(frozen=True)
class Suggestion:
    """The suggested role and settings of a column, and the reason."""

    column: str
    role: str
    settings: dict[str, str]
    reason: str


@dataclass(frozen=True)
class Suggestions:
    """A spec to begin with, to be gone through line by line. It sets no k."""

    columns: tuple[Suggestion, ...]
    person: str | None
    _toml: str = field(repr=False)

    def to_toml(self) -> str:
        """The spec file, its reasons as comments. It does not run before k is set."""
        return self._toml

    def _repr_html_(self) -> str:
        rows = [(each.column, each.role, each.reason) for each in self.columns]
        note = "<p><b>Suggestions</b>: a place to begin. Only you can tell what others could know about these people.</p>"
        return page(note + table(("column", "role", "why"), rows))


def suggest(data: Any, *, name: str | None = None, threads: int | None = None, progress: Progress = None) -> Suggestions:
    """Suggests what each column of a table is for: a place to begin.

    >>> import kohort
    >>> found = kohort.suggest("examples/clinic/patients.csv")
    >>> {each.column: each.role for each in found.columns}["diagnosis"]
    'sensitive'
    """
    source = source_of(data)
    name = name or _name_of(data)
    file = source.rows if source.is_file else name
    with reporting(progress) as hook:
        found = json.loads(_kohort.suggest(source.whole(), name, file, threads, hook))
    columns = tuple(
        Suggestion(each["name"], each["role"], each["settings"], each["reason"]) for each in found["columns"]
    )
    person = found["person"][0] if found["person"] else None
    return Suggestions(columns, person, found["toml"])


def schema(kind: Literal["spec", "manifest", "report"] = "spec") -> dict[str, Any]:
    """The JSON Schema of a spec file, of the manifest of a release, or of its ``report.json``.

    >>> import kohort
    >>> sorted(kohort.schema("manifest")["properties"])[:3]
    ['accepted_risks', 'achieved', 'algorithm']
    """
    return dict(json.loads(_kohort.schema(kind)))


@_listed
def anonymize(
    data: Any,
    *,
    cells: Cells = "labels",
    accept_risks: bool = False,
    threads: int | None = None,
    progress: Progress = None,
    **asked: Unpack[Asked],
) -> Release:
    """Releases a table so that nobody can be told apart from k-1 others, and verifies the result.

    ``data`` is a DataFrame of pandas or polars, a table of pyarrow, a relation of DuckDB, any object with
    ``__arrow_c_stream__``, the path of a CSV, Parquet or Arrow file, or a dict of :class:`kohort.Table` by name.

    Every column needs a role, and none is guessed:

    - ``identifiers`` name a person outright and are never released;
    - ``quasi`` columns are those that others could know: a list, or a dict to hierarchies such as :func:`kohort.steps`;
    - ``sensitive`` columns are those that nobody should learn: a list, or a dict to requirements such as
      :func:`kohort.l_diversity`;
    - ``plain`` columns help nobody to find a person and are released as they are; ``drop`` columns are not released;
    - ``person`` names the person; without it each row is one. ``person_k`` holds each person's own k.

    There is no default ``k``. ``preset`` takes an agency's: ``ema`` (12) or ``cms`` (11).

    ``cells`` says what quasi cells look like: ``labels`` such as ``[20,29]``; ``bounds``, two typed columns ``age_lo`` and
    ``age_hi``; or ``midpoint``, numbers. Columns with a hierarchy, with nulls or of text have labels in any case.

    Cells can be rounded, truncated or coded before classes are made, see :class:`kohort.Column`. ``read`` holds how a CSV file is
    read, such as ``{"separator": ";"}``, and ``settings`` any other key of a spec.
    ``threads`` limits the threads. ``progress`` is True, False or a function of a stage, the steps done and the steps in all;
    by default a bar is shown in terminals and notebooks.

    >>> import kohort
    >>> release = kohort.anonymize(
    ...     "examples/clinic/patients.csv", k=5, person="patient_id", identifiers="name", drop="occupation", plain="ward",
    ...     quasi={"birth": kohort.date(), "sex": None, "postcode": kohort.Column(kohort.mask(), type="text")},
    ...     sensitive={"diagnosis": kohort.l_diversity(3)},
    ... )
    >>> release.k
    5
    """
    return Spec(data, **asked).anonymize(cells=cells, accept_risks=accept_risks, threads=threads, progress=progress)


def apply(
    earlier: Any,
    new: Any,
    *,
    person: str | None = None,
    not_in: str | os.PathLike[str] | None = None,
    identifiers: Names = (),
    drop: Names = (),
    hierarchies: Mapping[str, Any] | None = None,
    max_suppressed: float | None = None,
    read: Read | None = None,
    accept_risks: bool = False,
    threads: int | None = None,
    progress: Progress = None,
) -> Release:
    """Releases new persons in the classes of an earlier release, and verifies the result, alone and together with the earlier one.

    ``earlier`` is the folder of a release, or a :class:`Release`; roles, types and requirements are its own. ``new`` is a frame or a
    path with the columns of the release; columns that it lacks are ``identifiers`` or ``drop``. Persons who fit into no class in which
    enough other new persons are, are left out: any share of them, or at most ``max_suppressed``.

    A person should be in one of the two releases only. ``person`` is the column that names the person, and ``not_in`` the path of the
    private table of the earlier release: then persons who are in both are refused. ``hierarchies`` has those that the earlier release
    withholds, by column. ``release.spec`` is None, because the earlier release says what is asked.

    >>> import kohort
    >>> rows = {"age": [20, 21, 22, 30, 31, 32], "ill": ["a", "b", "a", "b", "a", "b"]}
    >>> import pandas as pd
    >>> earlier = kohort.anonymize(pd.DataFrame(rows), k=3, quasi={"age": kohort.steps(10)}, sensitive="ill")
    >>> new = kohort.apply(earlier, pd.DataFrame({**rows, "age": [23, 24, 25, 26, 33, 44]}))
    >>> new.k, new.manifest["persons"]["suppressed"]
    (4, 2)
    """
    source = source_of(new, "the new table")
    if not_in is not None and person is None:
        raise TypeError("not_in compares persons: name the column that names them with person=...")
    if not_in is not None and not isinstance(not_in, (str, os.PathLike)):
        raise TypeError("not_in must be the path of the private table of the earlier release: write the frame to a file first")
    entry = {"file": "-", "columns": {}, **_reading(read, source)}
    with Folders() as folders, reporting(progress) as hook:
        made = _kohort.apply(
            folders.of(earlier),
            source.whole(),
            {"k": 1, "tables": {"table": entry}},
            folders.hierarchies(hierarchies),
            _names(identifiers, "identifiers"),
            _names(drop, "drop"),
            person,
            None if not_in is None else os.fspath(not_in),
            1.0 if max_suppressed is None else max_suppressed,
            accept_risks,
            threads,
            hook,
        )
    return Release(made, {str(json.loads(made.manifest)["tables"][0]["name"]): source}, None)


def _reports(reports: Iterable[Mapping[str, Any]]) -> tuple[Report, ...]:
    return tuple(Report(report["message"], report["hint"]) for report in reports)
