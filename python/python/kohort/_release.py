"""Releases: verified tables in memory, and the ways out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import _kohort
from ._html import loss_chart, number, page, percent, risk_chart, size_chart, table
from ._progress import Progress, reporting
from ._sources import Source, like_source, release_unused, to_arrow, to_pandas, to_polars
from ._words import Format

if TYPE_CHECKING:
    from ._report import Documents

# Cells of columns with these roles are released as they are.
_COPIED = ("sensitive", "plain")


class Described:
    """What a manifest says of a release."""

    def __init__(self, manifest: str) -> None:
        #: What was asked, reached and lost, as ``manifest.json`` says it. Files have no names before they are written.
        self.manifest: dict[str, Any] = json.loads(manifest)

    @property
    def k(self) -> int:
        """Persons in the smallest class."""
        return int(self.manifest["achieved"]["k"])

    @property
    def loss(self) -> dict[str, Any]:
        """What was lost: ``lm`` (0 to 1), ``ncp``, ``dm``, ... and ``columns``, LM per quasi column."""
        return dict(self.manifest["loss"])

    @property
    def risk(self) -> dict[str, Any]:
        """Risk of re-identification: ``highest`` and ``average``, each ``before`` and ``after``."""
        return dict(self.manifest["risk"])

    @property
    def notes(self) -> list[str]:
        """Notes on what was done differently than a reader of the spec would expect."""
        notes = [note["message"] for note in self.manifest.get("notes", [])]
        listed = self._own_values_listed()
        if listed:
            names = " and ".join(f"'{column}'" for column in listed)
            notes.append(
                f"the released hierarchy of {names} lists only values of the table: withhold it if it was made from "
                "the table (hierarchies='withhold')"
            )
        return notes

    @property
    def accepted_risks(self) -> list[str]:
        """Blatant risks that ``accept_risks=True`` accepted."""
        return [risk["message"] for risk in self.manifest.get("accepted_risks", [])]

    def _own_values_listed(self) -> list[str]:
        """Columns whose released hierarchy lists only values of the private table, and so may tell which values it holds."""
        raise NotImplementedError

    def _in_words(self) -> str:
        persons, audiences = self.manifest["persons"], self.manifest.get("audiences") or {}
        reached = self.manifest["achieved"].get("audiences", {})
        asked = ", ".join(f"{name}: k = {said['k']} asked, {reached[name]} reached" for name, said in audiences.items())
        of_everybody = f"k = {self.manifest['requirement']['k']} asked, {self.k} reached"
        return (
            f"{asked or of_everybody}; {persons['out']} of {persons['in']} persons in {self.manifest['classes']} classes; "
            f"loss {self.loss['lm']:.4f}; verified"
        )


class WrittenRelease(Described):
    """A release that was written in cells. Its rows are in the files of ``folder``."""

    def __init__(self, manifest: str, listed: list[str], folder: str) -> None:
        super().__init__(manifest)
        self._listed = listed
        #: The folder of the release.
        self.folder = folder

    def _own_values_listed(self) -> list[str]:
        return self._listed

    def __repr__(self) -> str:
        return f"<release in {self.folder}: {self._in_words()}>"

    def _repr_html_(self) -> str:
        return page("".join(shown(self, [])))


class Release(Described):
    """A release that the verifier has accepted.

    ``table`` is what went in: a DataFrame of pandas or polars, a table of pyarrow, a relation of DuckDB. For a file it is a
    :class:`kohort.ArrowTable`, which all of these libraries take.
    """

    def __init__(self, made: _kohort.Release, sources: Mapping[str, Source], spec: Any) -> None:
        super().__init__(made.manifest)
        self._made = made
        self._sources = sources
        self._arrow: dict[str, _kohort.ArrowTable] | None = None
        self._tables: dict[str, Any] | None = None
        self._documents: Documents | None = None
        #: The spec that it was made from.
        self.spec = spec

    @property
    def arrow_tables(self) -> dict[str, _kohort.ArrowTable]:
        """The released tables by name, for any library that speaks Arrow. They are verified again when they are made."""
        if self._arrow is None:
            self._arrow = self._made_tables()
        return self._arrow

    def _made_tables(self) -> dict[str, _kohort.ArrowTable]:
        n_rows = max(entry["rows_out"] for entry in self.manifest["tables"])
        release_unused(n_rows)
        tables = dict(self._made.tables())
        release_unused(n_rows)
        return tables

    @property
    def tables(self) -> dict[str, Any]:
        """The released tables by name, as what went in."""
        if self._tables is None:
            arrow = self._made_tables() if self._arrow is None else self._arrow
            sources = {name: self._source(name) for name in arrow}
            self._tables = {name: like_source(rows, sources[name], self._copied(name)) for name, rows in arrow.items()}
            # Frames of pandas are copies. Other tables share the memory of the Arrow data, so keeping that costs nothing.
            if not any(source is not None and source.kind == "pandas" for source in sources.values()):
                self._arrow = arrow
        return self._tables

    @property
    def table(self) -> Any:
        """The only released table, as what went in."""
        return self.tables[self._only()]

    def to_pandas(self, table: str | None = None) -> Any:
        """A released table as a DataFrame of pandas. Names the table where there are several."""
        return self._made_like("pandas", to_pandas, table)

    def to_polars(self, table: str | None = None) -> Any:
        """A released table as a DataFrame of polars."""
        return self._made_like("polars", to_polars, table)

    def to_arrow(self, table: str | None = None) -> Any:
        """A released table as a table of pyarrow."""
        return self._made_like("pyarrow", to_arrow, table)

    def _made_like(self, kind: str, make: Callable[..., Any], table: str | None) -> Any:
        name = table or self._only()
        if name not in self.arrow_tables:
            raise TypeError(f"the release has no table '{name}': it has {', '.join(self.arrow_tables)}")
        source = self._source(name)
        like = source.like if source is not None and source.kind == kind else None
        return make(self.arrow_tables[name], like, self._copied(name))

    def to_csv(self) -> str:
        """The only released table as CSV."""
        return self._made.csv()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.arrow_tables[self._only()].__arrow_c_stream__(requested_schema)

    @property
    def class_sizes(self) -> dict[int, int]:
        """The ten smallest class sizes, each with the number of classes of that size."""
        return dict(_sizes(self._counts))

    @property
    def rows_left_out(self) -> list[int]:
        """Rows of the private table, from 1, that no class can take beside earlier releases. For the publisher alone."""
        return self._made.rows_left_out

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        format: Format | None = None,
        force: bool = False,
        threads: int | None = None,
        progress: Progress = None,
    ) -> dict[str, Any]:
        """Writes the release to a folder, as the command does, and gives its manifest.

        The files are written beside the folder, read back, verified and renamed, so there is a whole release or none. Tables
        have the format of their input, or Parquet where they came from memory. ``force`` replaces a release that is there.
        """
        with reporting(progress) as hook:
            return dict(json.loads(self._made.write(os.fspath(folder), format, force, threads, hook)))

    @property
    def total_changes(self) -> list[dict[str, Any]]:
        """By how much rows that are left out change totals and means of sensitive numbers in child tables. For the publisher alone.

        Each has ``table``, ``column``, ``total`` and ``mean``: -0.04 if the release lacks 4 % of it.
        """
        return [dict(zip(("table", "column", "total", "mean"), change)) for change in self._made.total_changes]

    @property
    def report(self) -> dict[str, Any]:
        """The figures of the report that :meth:`write` puts beside the tables, as ``report.json`` has them."""
        return self._made_documents().figures

    @property
    def report_html(self) -> str:
        """The report that :meth:`write` puts beside the tables: one page for people who decide and sign."""
        return self._made_documents().html

    def _made_documents(self) -> Documents:
        """The documents are made from released files, so the release is written to a folder that is then removed."""
        if self._documents is None:
            from ._folders import Folders
            from ._report import read_documents

            with Folders() as folders:
                self._documents = read_documents(folders.of(self))
        return self._documents

    def _own_values_listed(self) -> list[str]:
        return self._made.own_values_listed

    @property
    def _counts(self) -> dict[str, Any]:
        return dict(json.loads(self._made.findings))

    def _only(self) -> str:
        names: list[str] = [entry["name"] for entry in self.manifest["tables"]]
        if len(names) == 1:
            return names[0]
        raise TypeError(f"the release has several tables: use tables[...], or name one of {', '.join(names)}")

    def _source(self, name: str) -> Source | None:
        if name in self._sources:
            return self._sources[name]
        # The sensitive values beside a register are a table of their own; they come from the only private table.
        return next(iter(self._sources.values()), None)

    def _copied(self, name: str) -> frozenset[str]:
        entry = next(entry for entry in self.manifest["tables"] if entry["name"] == name)
        return frozenset(column for column, said in entry["columns"].items() if said["role"] in _COPIED)

    def __repr__(self) -> str:
        return f"<release: {self._in_words()}>"

    def _repr_html_(self) -> str:
        found = self._counts
        return page("".join(shown(self, [size_chart(_sizes(found), found["counted"])])))


def shown(release: Described, charts: list[str]) -> list[str]:
    """What a notebook shows of a release, ``charts`` after the others."""
    manifest = release.manifest
    persons = manifest["persons"]
    summary = (
        f"<p><b>Release</b>, verified. {number(persons['out'])} of {number(persons['in'])} persons in "
        f"{number(manifest['classes'])} classes, {number(persons['suppressed'])} left out, by {manifest['algorithm']}. "
        f"Loss {percent(manifest['loss']['lm'])}.</p>"
    )
    parts = [
        summary,
        table(("requirement", "asked", "reached"), _requirements(manifest)),
        risk_chart(manifest["risk"]),
        loss_chart(manifest["loss"]["columns"]),
        *charts,
    ]
    parts += [f"<p>note: {_escaped(note)}</p>" for note in release.notes]
    parts += [f'<p class="no">accepted risk: {_escaped(risk)}</p>' for risk in release.accepted_risks]
    return parts


def _requirements(manifest: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Everything that was asked, what was asked of it, and what was reached."""
    achieved, asked = manifest["achieved"], manifest["requirement"]
    rows: list[tuple[Any, ...]] = []
    audiences = manifest.get("audiences") or {}
    if not audiences:
        rows.append(("k (persons in the smallest class)", asked["k"], achieved["k"]))
    for audience, said in audiences.items():
        rows.append((f"k for audience {audience}", said["k"], achieved["audiences"][audience]))
        rows += _of_columns(said.get("sensitive", {}), achieved.get("learned", {}).get(audience, {}), f"{audience}, ")
    coalitions = asked.get("coalitions", {})
    for coalition, said in coalitions.items():
        reached = achieved["coalitions"][coalition]
        who = f"{' and '.join(said['audiences'])} together"
        if said.get("k") is not None:
            rows.append((f"k for {who}", said["k"], reached["k"]))
        rows += _of_columns(said.get("sensitive", {}), reached["sensitive"], f"{who}, ")
    if achieved.get("collusion_k") is not None and not coalitions:
        rows.append(("k if all audiences collude", asked.get("collusion_k"), achieved["collusion_k"]))
    if asked.get("person_k"):
        rows.append(("each person's own k", "yes", "met"))
    if asked.get("delta_presence"):
        rows.append(("share of private persons in a class", _setting(asked["delta_presence"]), "met"))
    for column, measured in achieved["sensitive"].items():
        settings = asked["sensitive"].get(column)
        rows += _of_columns({column: settings}, {column: measured}) if settings else [(f"{column}: l (distinct values)", None, measured["l"])]
    return rows


def _of_columns(asked: Mapping[str, Any], reached: Mapping[str, Any], who: str = "") -> list[tuple[Any, ...]]:
    """The requirements on some columns. What is not measured was met, or there would be no release."""
    rows = []
    for column, settings in asked.items():
        measured = reached.get(column, {})
        for key, setting in settings.items():
            value = measured.get("t_by_distance") if key == "t" else None
            value = value if value is not None else measured.get(key)
            if key != "distance":
                rows.append((f"{who}{column}: {key}", _setting(setting), value if value is not None else "met"))
    return rows


def _sizes(counts: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The smallest class sizes, if they are known, each with the number of classes of that size."""
    return [(each["persons"], each["classes"]) for each in counts["smallest_classes"] or ()]


def _setting(setting: Any) -> Any:
    return ", ".join(map(str, setting)) if isinstance(setting, list) else setting


def _escaped(text: str) -> str:
    import html

    return html.escape(text)
