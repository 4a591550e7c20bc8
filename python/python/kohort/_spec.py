"""Specs: what is to be released, and how, said in Python or in a file."""

from __future__ import annotations

import functools
import inspect
import os
import string
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from . import _kohort
from ._errors import InputError
from ._hierarchy import Hierarchy, hierarchy
from ._progress import Progress, reporting
from ._release import Release, WrittenRelease
from ._requirements import join
from ._sources import PandasColumns, PolarsColumns, Source, source_of
from ._words import (
    Algorithm,
    Cells,
    Childless,
    Clustering,
    Columns,
    Datafly,
    Format,
    FullDomain,
    Hierarchies,
    Keys,
    Leftovers,
    Mondrian,
    Names,
    Order,
    Orphans,
    Period,
    Preset,
    Read,
    Registering,
    Steer,
    ValueType,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._explore import Explored
    from ._functions import Verification


@dataclass(frozen=True)
class Column:
    """A quasi, sensitive or plain column with more to say than a hierarchy or requirements.

    ``type`` is ``integer``, ``decimal``, ``float``, ``date``, ``timestamp``, ``text`` or ``boolean``. ``sensitive_to`` names
    audiences that must not learn a quasi column, although others know it.

    Cells can be changed before classes are made: ``round`` makes numbers multiples of a base; ``truncate`` makes dates the first
    day of their ``month``, ``quarter``, ``year`` or ``decade``; ``top`` and ``bottom`` code values at a bound and beyond it as
    ``>= bound`` and ``<= bound``. A bound is a number, a date or :func:`quantile`.

    ``weight`` says how much the loss of a quasi column counts, compared with others: 1 without it.
    """

    hierarchy: Any = None
    requirements: Any = None
    type: ValueType | None = None
    sensitive_to: Names = ()
    round: Any = None
    truncate: Period | None = None
    top: Any = None
    bottom: Any = None
    weight: float | None = None


def quantile(share: float) -> dict[str, float]:
    """A bound for ``top`` or ``bottom`` of a :class:`Column`: the value up to which this share of the cells lies.

    It is never a value that fewer than k persons hold.

    >>> Column(top=quantile(0.99)).top
    {'quantile': 0.99}
    """
    return {"quantile": share}


@dataclass(frozen=True)
class Table:
    """One private table: its rows, and the role of each column. Every column needs a role, and none is guessed.

    ``data`` is a frame or a path. ``person`` is the column that names the person; without it each row is one. ``quasi``
    columns are those that others could know; ``sensitive`` columns those that nobody should learn. ``parent`` is the name of
    the table that the rows belong to, and the column that says to which row. ``orphans="drop"`` leaves out rows without a
    parent row, ``childless="keep"`` allows persons without such rows, and ``max_rows_left_out`` is the largest share of the rows
    of a child table that may be left out. ``pseudonyms`` is a dict from columns to the files of their keys: each value is released as a
    code that only the owner of the key can compute. ``read`` says how a CSV file is read, and ``settings`` holds any other key of a table
    in a spec.
    """

    data: Any
    person: str | bool | None = None
    identifiers: Names = ()
    quasi: Columns = ()
    sensitive: Columns = ()
    plain: Columns = ()
    drop: Names = ()
    pseudonyms: Mapping[str, str | os.PathLike[str]] = field(default_factory=dict)
    person_k: str | None = None
    key: str | None = None
    parent: tuple[str, str] | None = None
    references: Mapping[str, str] = field(default_factory=dict)
    orphans: Orphans | None = None
    childless: Childless | None = None
    max_rows_left_out: float | None = None
    read: Read | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Audience:
    """Somebody who gets the release: the quasi columns they may know, and a k of their own."""

    quasi: Names
    k: int | None = None


@dataclass(frozen=True)
class Coalition:
    """What must hold if audiences put together what they know: those that ``audiences`` names, or all of them.

    ``sensitive`` is a dict from columns to requirements, and ``person_k`` says whether each person's own k holds for them.
    """

    audiences: Names = ()
    k: int | None = None
    person_k: bool | None = None
    sensitive: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Register:
    """A public list of people among whom those of the private table hide.

    ``key`` is the column that equals the private table's person column. ``columns`` says what the register calls quasi
    columns of the private table. ``previous`` is the register's file, or files, at the time of earlier releases.
    """

    data: Any
    key: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    date: Any = None
    sha256: str | None = None
    previous: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


class Asked(TypedDict, total=False):
    """What can be asked of a release: the parameters that :class:`Spec` and :func:`kohort.anonymize` share."""

    k: int | None
    preset: Preset | None
    person: str | bool | None
    identifiers: Names | None
    quasi: Columns | None
    sensitive: Columns | None
    plain: Columns | None
    drop: Names | None
    pseudonyms: Mapping[str, str | os.PathLike[str]] | None
    person_k: str | None
    read: Read | None
    name: str | None
    audiences: Mapping[str, Any] | None
    collusion: Any
    steer: Steer | None
    registers: Mapping[str, Any] | None
    register: Registering | None
    delta_presence: tuple[float, float] | None
    previous: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None
    algorithm: Algorithm | None
    objective: str | None
    effort: int | None
    max_suppressed: float | None
    leftovers: Leftovers | None
    order: Order | None
    keys: Keys | None
    hierarchies: Hierarchies | None
    seed: int | None
    mondrian: Mondrian | None
    datafly: Datafly | None
    full_domain: FullDomain | None
    clustering: Clustering | None
    settings: Mapping[str, Any] | None


# Parameters that say what the columns of the only table are for, and those that are keys of a spec as they are.
_ROLES = ("person", "identifiers", "quasi", "sensitive", "plain", "drop", "pseudonyms", "person_k")
_KEYS = ("algorithm", "objective", "effort", "max_suppressed", "leftovers", "order", "keys", "hierarchies", "seed", "steer")
_SECTIONS = ("mondrian", "datafly", "full_domain", "clustering", "register")

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _listed(function: _Function) -> _Function:
    """Lists the parameters of :class:`Asked` in the signature of a function that takes them, for ``help()``, and refuses others."""
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    keyword = inspect.Parameter.KEYWORD_ONLY
    n_positional = sum(parameter.kind is not keyword for parameter in own)
    types = {name: getattr(said, "__forward_arg__", said) for name, said in Asked.__annotations__.items()}
    asked = [inspect.Parameter(name, keyword, default=None, annotation=said) for name, said in types.items() if name not in signature.parameters]
    listed = signature.replace(parameters=[*own[:n_positional], *asked, *own[n_positional:]])

    @functools.wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        listed.bind(*given, **named)
        return function(*given, **named)

    checked.__signature__ = listed  # type: ignore[attr-defined]
    return cast(_Function, checked)


class Spec:
    """What is to be released, and how. Takes the parameters of :func:`kohort.anonymize` that say so.

    >>> import kohort
    >>> spec = kohort.Spec("patients.csv", k=5, identifiers="name", quasi={"age": kohort.steps(5, 10)}, plain="ward")
    >>> print(spec.to_toml())
    k = 5
    <BLANKLINE>
    [tables.patients]
    file = "patients.csv"
    <BLANKLINE>
    [tables.patients.columns.name]
    role = "identifier"
    <BLANKLINE>
    [tables.patients.columns.ward]
    role = "plain"
    <BLANKLINE>
    [tables.patients.columns.age]
    role = "quasi"
    <BLANKLINE>
    [tables.patients.columns.age.hierarchy]
    steps = [5, 10]
    <BLANKLINE>
    """

    @_listed
    def __init__(self, data: Any, **asked: Unpack[Asked]) -> None:
        given: dict[str, Any] = {**dict.fromkeys(Asked.__annotations__), **asked}
        k, preset, delta_presence, previous = (given[name] for name in ("k", "preset", "delta_presence", "previous"))
        if k is None and preset is None:
            raise TypeError(
                "k is missing, and there is no default: say how many persons must look the same, as in k=5, "
                "or name the preset of an agency, as in preset='ema'"
            )
        if k is not None and preset is not None:
            raise TypeError("k and preset both say how many persons must look the same: keep one of them")
        self._sources: dict[str, Source] = {}
        self._texts: dict[str, str] = {}
        self._file: tuple[str, str] | None = None
        self._folder = ""
        own = Table(data, **{role: given[role] for role in _ROLES}, read=given["read"])
        document: dict[str, Any] = {"k": k} if k is not None else {"preset": preset}
        document.update({key: given[key] for key in _KEYS if given[key] is not None})
        if delta_presence is not None:
            document["delta_presence"] = list(delta_presence)
        if previous is not None:
            document["previous"] = _paths(previous)
        document.update({section: dict(given[section]) for section in _SECTIONS if given[section]})
        document.update(given["settings"] or {})
        name = given["name"]
        if isinstance(data, Mapping):
            _refuse_roles_of_many(own)
            tables = {table_name: _as_table(table_name, table) for table_name, table in data.items()}
        elif isinstance(data, Table):
            _refuse_roles_of_many(own)
            tables = {name or _name_of(data.data): data}
        else:
            tables = {name or _name_of(data): own}
        document["tables"] = {table_name: self._add_table(table_name, table) for table_name, table in tables.items()}
        if given["audiences"]:
            document["audiences"] = {audience: _audience(said) for audience, said in given["audiences"].items()}
        if given["collusion"] is not None:
            document["collusion"] = _collusion(given["collusion"])
        if given["registers"]:
            document["registers"] = {each: self._add_register(each, said) for each, said in given["registers"].items()}
        self._document: dict[str, Any] | None = document

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Spec:
        """Reads a spec file. Paths in it start from its folder."""
        path = os.fspath(path)
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            problem = type(error)(error.errno, error.strerror, path)
        except UnicodeDecodeError:
            raise InputError([(f"{path}: is no text", "save the file as UTF-8 text")]) from None
        else:
            return cls.from_text(text, path)
        raise problem

    @classmethod
    def from_text(cls, text: str, path: str | os.PathLike[str] = "release.toml") -> Spec:
        """A spec from the text of a spec file. Paths in it start from the folder of ``path``, which messages name."""
        spec = cls.__new__(cls)
        spec._sources, spec._texts, spec._folder = {}, {}, ""
        spec._document = None
        spec._file = (text, os.fspath(path))
        _kohort.Job.from_text(*spec._file)
        return spec

    def to_toml(self) -> str:
        """The spec as a file holds it. Tables in memory are named in it like files."""
        return self._job_of_files().toml

    def anonymize(
        self,
        *,
        tables: Mapping[str, Any] | None = None,
        cells: Cells = "labels",
        k: int | None = None,
        effort: int | None = None,
        seed: int | None = None,
        accept_risks: bool = False,
        threads: int | None = None,
        progress: Progress = None,
    ) -> Release:
        """Reads, anonymizes and verifies. ``tables`` gives frames for tables or registers that the spec names as files.

        ``k``, ``effort`` and ``seed`` are used in place of those of the spec. An audience with a k of its own keeps it.
        """
        with reporting(progress) as hook:
            job, sources = self._job(tables, threads, hook)
            if any(source.is_file for source in sources.values()) or len(sources) < len(job.files):
                _warn_if_too_large(job)
            made = job.asking(k, effort).anonymize(cells, seed, accept_risks, threads, hook)
        registers = job.registers
        return Release(made, {name: source for name, source in sources.items() if name not in registers}, self)

    def write_in_cells(
        self,
        folder: str | os.PathLike[str],
        memory: int | str,
        *,
        tables: Mapping[str, Any] | None = None,
        format: Format | None = None,
        force: bool = False,
        k: int | None = None,
        effort: int | None = None,
        seed: int | None = None,
        accept_risks: bool = False,
        threads: int | None = None,
        progress: Progress = None,
    ) -> WrittenRelease:
        """Reads, anonymizes, verifies and writes a table that may be larger than memory, as the command does with ``--memory``.

        ``memory`` is how much may be used for the data, in bytes or as in ``"2GB"``. The table is cut into cells that fit, whose
        rows wait beside ``folder``, encrypted. For one table.
        """
        n_bytes = _size(memory)
        with reporting(progress) as hook:
            # Cells are read row by row, and frames are in memory anyway, so they are handed over as a whole.
            job, _ = self._job(tables, threads, hook, by_column=False)
            job = job.asking(k, effort)
            manifest, listed = job.write_in_cells(os.fspath(folder), n_bytes, format, force, seed, accept_risks, threads, hook)
        return WrittenRelease(manifest, listed, os.fspath(folder))

    def plan_in_cells(
        self,
        memory: int | str,
        *,
        tables: Mapping[str, Any] | None = None,
        threads: int | None = None,
        progress: Progress = None,
    ) -> PlannedCells:
        """How :meth:`write_in_cells` would cut the table, as the command says it with ``--dry-run``. Nothing is written."""
        with reporting(progress) as hook:
            job, _ = self._job(tables, threads, hook, by_column=False)
            return PlannedCells(*job.plan_in_cells(_size(memory), threads, hook))

    def missing_values(
        self,
        *,
        tables: Mapping[str, Any] | None = None,
        threads: int | None = None,
        progress: Progress = None,
    ) -> list[MissingValue]:
        """The values of the tables that their hierarchy files lack, for which a release is refused.

        They are cells of private tables, so they are for the publisher alone.
        """
        with reporting(progress) as hook:
            job, _ = self._job(tables, threads, hook)
            return [MissingValue(*found) for found in job.missing_values(threads, hook)]

    def explore(
        self,
        k: int | Iterable[int],
        *,
        steps: int | None = None,
        max_suppressed: float | Iterable[float] = (),
        algorithms: Algorithm | Iterable[Algorithm] = (),
        drop_columns: Names = (),
        tables: Mapping[str, Any] | None = None,
        threads: int | None = None,
        progress: Progress = None,
    ) -> Explored:
        """Shows what several values of k would cost. See :func:`kohort.explore`."""
        from ._explore import explored

        with reporting(progress) as hook:
            job, _ = self._job(tables, threads, hook)
            return explored(job, k, steps, max_suppressed, algorithms, _names(drop_columns, "drop_columns"), threads, hook)

    def verify(
        self,
        folder: str | os.PathLike[str],
        *,
        k: int | None = None,
        memory: int | str | None = None,
        threads: int | None = None,
        progress: Progress = None,
    ) -> Verification:
        """Counts a release again, and compares it with the private tables of this spec."""
        from ._functions import verify

        return verify(folder, against=self, k=k, memory=memory, threads=threads, progress=progress)

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self._job_of_files().files)
        return f"<spec of {names}>"

    def _job_of_files(self) -> _kohort.Job:
        if self._file is not None:
            return _kohort.Job.from_text(*self._file)
        assert self._document is not None
        return _kohort.Job(self._document, self._folder)

    def _job(
        self, tables: Mapping[str, Any] | None, threads: int | None, hook: Any, *, by_column: bool = True
    ) -> tuple[_kohort.Job, dict[str, Source]]:
        """The job with everything that is in memory, and where each table came from."""
        job = self._job_of_files()
        files = {name: os.fspath(file) for name, file in job.files}
        sources = dict(self._sources)
        for name, data in (tables or {}).items():
            if name not in files:
                raise TypeError(f"the spec has no table or register '{name}': it has {', '.join(files)}")
            sources[name] = source_of(data, f"table '{name}'")
        for file, text in self._texts.items():
            job = job.instead_of_text(file, text)
        registers = set(job.registers)
        for name, source in sources.items():
            # The columns of a register are read twice, so they are better converted all at once.
            if by_column and isinstance(source.rows, (PandasColumns, PolarsColumns)) and name not in registers:
                job = job.instead_of_columns(files[name], source.rows)
            elif not source.is_file:
                job = job.instead_of(files[name], source.whole(), threads, hook)
        return job, sources

    def _add_table(self, name: str, table: Table) -> dict[str, Any]:
        source = source_of(table.data, f"table '{name}'")
        self._sources[name] = source
        entry: dict[str, Any] = {"file": source.rows if source.is_file else name, **(table.read or {}), **table.settings}
        for key in ("orphans", "childless", "max_rows_left_out"):
            if getattr(table, key) is not None:
                entry[key] = getattr(table, key)
        if table.person is not None and table.person is not False:
            entry["person"] = table.person
        if table.key is not None:
            entry["key"] = table.key
        if table.parent is not None:
            parent, foreign_key = table.parent
            entry["parent"] = {"table": parent, "foreign_key": foreign_key}
        columns: dict[str, dict[str, Any]] = {}

        def add(column: str, settings: dict[str, Any]) -> None:
            if column in columns:
                roles = f"'{columns[column]['role']}' and '{settings['role']}'"
                raise TypeError(f"table '{name}': column '{column}' has two roles, {roles}: keep one of them")
            columns[column] = settings

        for column in _names(table.identifiers, "identifier"):
            add(column, {"role": "identifier"})
        for column, said in _by_column(table.plain, "plain").items():
            if said is not None and not isinstance(said, Column):
                raise TypeError(f"table '{name}': plain column '{column}': say more as kohort.Column(...), such as Column(round=10)")
            add(column, {"role": "plain", **self._column(name, column, said, is_quasi=False)})
        for column in _names(table.drop, "drop"):
            add(column, {"role": "drop"})
        if not isinstance(table.pseudonyms or {}, Mapping):
            raise TypeError(f"table '{name}': name the file of each key, as in pseudonyms={{'id': 'pseudonyms.key'}}")
        for column, key_file in _by_column(table.pseudonyms or {}, "pseudonyms").items():
            add(column, {"role": "pseudonym", "key_file": os.fspath(key_file)})
        for column in _names(table.person_k, "person_k"):
            add(column, {"role": "person_k"})
        for column, other in table.references.items():
            add(column, {"role": "key", "references": other})
        for column, said in _by_column(table.quasi, "quasi").items():
            add(column, {"role": "quasi", **self._column(name, column, said, is_quasi=True)})
        for column, said in _by_column(table.sensitive, "sensitive").items():
            add(column, {"role": "sensitive", **self._column(name, column, said, is_quasi=False)})
        entry["columns"] = columns
        return entry

    def _column(self, table: str, column: str, said: Any, *, is_quasi: bool) -> dict[str, Any]:
        if said is None:
            return {}
        if not isinstance(said, Column):
            said = Column(hierarchy=said) if is_quasi else Column(requirements=said)
        settings = join(said.requirements)
        for key in ("type", "round", "truncate", "top", "bottom", "weight"):
            if getattr(said, key) is not None:
                settings[key] = getattr(said, key)
        if _names(said.sensitive_to, "sensitive_to"):
            settings["sensitive_to"] = _names(said.sensitive_to, "sensitive_to")
        if said.hierarchy is not None:
            made: Hierarchy = hierarchy(said.hierarchy)
            settings["hierarchy"], texts = made._in_spec(f"hierarchy of {table}.{column}")
            self._texts.update(texts)
        return settings

    def _add_register(self, name: str, said: Any) -> dict[str, Any]:
        said = said if isinstance(said, Register) else Register(said)
        source = source_of(said.data, f"register '{name}'")
        self._sources[name] = source
        entry: dict[str, Any] = {"file": source.rows if source.is_file else f"register {name}", **said.settings}
        if said.key is not None:
            entry["key"] = said.key
        if said.columns:
            entry["columns"] = dict(said.columns)
        if said.date is not None:
            entry["date"] = str(said.date)
        if said.sha256 is not None:
            entry["sha256"] = said.sha256
        if said.previous is not None:
            entry["previous"] = _paths(said.previous)
        return entry


@dataclass(frozen=True)
class MissingValue:
    """A value that a hierarchy file lacks. It is a cell of a private table."""

    table: str
    column: str
    # A value must not be printed by chance.
    value: str = field(repr=False)
    #: The rows that hold it.
    rows: int


@dataclass(frozen=True)
class PlannedCells:
    """How a table would be cut into cells. Cells in which the requirement can't be reached are joined later."""

    rows: int
    cells: int
    #: The rows that the largest cell is expected to have.
    rows_of_largest_cell: int
    #: What the work may take on the disk at most, the release included.
    bytes_on_disk: int
    #: How often all rows are read.
    passes: int


_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _size(memory: int | str) -> int:
    """A number of bytes such as 2_000_000_000 or "2GB"."""
    if not isinstance(memory, str):
        return int(memory)
    number = memory.strip().rstrip(string.ascii_letters)
    unit = memory.strip()[len(number) :].upper()
    for ending in ("IB", "B"):
        unit = unit.removesuffix(ending) if len(unit) > 1 else unit
    try:
        return int(float(number) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        problem = (f"memory={memory!r}: no size", "give a number of bytes, or a number and a unit, as in '2GB'")
    raise InputError([problem])


def _warn_if_too_large(job: _kohort.Job) -> None:
    """Warns of a file that would not fit into memory. The variable KOHORT_MEMORY says how much there is, as for the command."""
    said = os.environ.get("KOHORT_MEMORY")
    found = job.too_large(None if said is None else _size(said))
    if found is not None:
        needed, there, in_cells = (n_bytes >> 20 for n_bytes in found)
        warnings.warn(
            f"about {needed} MB of memory would be needed and {there} MB are there: "
            f"Spec.write_in_cells(folder, memory='{in_cells}MB') releases the table in cells",
            RuntimeWarning,
            stacklevel=3,
        )


def _as_table(name: str, table: Any) -> Table:
    if isinstance(table, Table):
        return table
    raise TypeError(f"table '{name}': wrap it, so that its columns have roles: kohort.Table(frame, quasi=..., ...)")


def _refuse_roles_of_many(own: Table) -> None:
    given = [
        name
        for name in (*_ROLES, "read")
        if getattr(own, name) not in (None, (), {})
    ]
    if given:
        raise TypeError(f"{', '.join(given)}: tables have roles of their own, so say it in kohort.Table(...)")


def _name_of(data: Any) -> str:
    """What a file is called up to its first dot."""
    if not isinstance(data, (str, os.PathLike)):
        return "table"
    name = os.path.basename(os.fspath(data))
    for character in ':*?"<>|':
        name = name.replace(character, "_")
    return next((part for part in name.split(".") if part), "table")


def _paths(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    return [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def _names(names: Any, role: str) -> list[str]:
    if names is None:
        return []
    listed: list[str] = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(f"{role}: column names are text, not {type(name).__name__}")
    return listed


def _by_column(said: Any, role: str) -> dict[str, Any]:
    if isinstance(said, Mapping):
        _names(said.keys(), role)
        return dict(said)
    return dict.fromkeys(_names(said, role))


def _audience(asked: Any) -> dict[str, Any]:
    if not isinstance(asked, Audience):
        asked = Audience(_names(asked, "audience"))
    entry: dict[str, Any] = {"quasi": _names(asked.quasi, "audience")}
    if asked.k is not None:
        entry["k"] = asked.k
    return entry


def _collusion(asked: Any) -> dict[str, Any]:
    """``collusion=2``, a :class:`Coalition`, or the settings of all together and of named coalitions."""
    if isinstance(asked, Coalition):
        said = {"audiences": _names(asked.audiences, "audiences"), "k": asked.k, "person_k": asked.person_k, "sensitive": asked.sensitive}
        asked = {key: value for key, value in said.items() if value is not None and (value or key in ("k", "person_k"))}
    if not isinstance(asked, Mapping):
        return {"k": asked}
    entry = {}
    for key, value in asked.items():
        if key == "sensitive":
            entry[key] = {column: join(requirements) for column, requirements in value.items()}
        elif isinstance(value, (Mapping, Coalition)):
            entry[key] = _collusion(value)
        else:
            entry[key] = value
    return entry
