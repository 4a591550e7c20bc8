"""Tables that come in, and go out as what came in.

Every table crosses as Arrow data. Other libraries are imported only where a table of theirs is given or asked for.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from ._errors import InputError, MissingLibrary
from ._kohort import ArrowTable


@dataclass(frozen=True)
class Source:
    """A table as it came in.

    ``rows`` is a path, an object that speaks Arrow's PyCapsule interface, or a frame that must be converted. ``like`` is the
    table that came in, so that a release of it can look like it.
    """

    kind: str
    rows: Any
    like: Any = None

    @property
    def is_file(self) -> bool:
        return self.kind == "file"

    def whole(self) -> Any:
        """The path, or all rows as an object that speaks Arrow's PyCapsule interface."""
        return self.rows.table() if isinstance(self.rows, (PandasColumns, PolarsColumns)) else self.rows


class PandasColumns:
    """The columns of a DataFrame as Arrow data: one at a time, or all together.

    Cells are copied only where NumPy and Arrow differ.
    """

    def __init__(self, frame: Any, what: str) -> None:
        if not hasattr(frame, "columns"):
            raise TypeError(f"{what} must be a DataFrame, not a {type(frame).__name__}: use to_frame()")
        if any(name is not None for name in frame.index.names):
            clash = [name for name in frame.index.names if name in frame.columns]
            if clash:
                raise InputError([(f"{what}: {_list(clash)} names an index and a column", "rename one of them")])
            frame = frame.reset_index()
        others = [name for name in frame.columns if not isinstance(name, str)]
        if others:
            kinds = sorted({type(name).__name__ for name in others})
            message = f"{what}: {len(others)} column names are not text but {', '.join(kinds)}: {_list(others)}"
            raise InputError([(message, "rename them: df.columns = df.columns.astype(str)")])
        doubled = [str(name) for name in dict.fromkeys(frame.columns[frame.columns.duplicated()])]
        if doubled:
            raise InputError([(f"{what}: several columns are called {_list(doubled)}", "rename all but one of them")])
        self.frame = frame
        self.names: list[str] = list(frame.columns)
        self._what = what
        self._pyarrow = _import("pyarrow", "to read a DataFrame of pandas")

    def column(self, position: int) -> Any:
        """A table of pyarrow with one column. An exception says what is wrong with the column, without its name."""
        if len(self.frame) >= _MANY_ROWS:
            self._pyarrow.default_memory_pool().release_unused()
        name = self.names[position]
        column = self._converted(name)
        if column is None:
            raise InputError([_UNFIT])
        return self._pyarrow.table([column], names=[name])

    def table(self) -> Any:
        """A table of pyarrow with all columns."""
        columns = {name: self._converted(name) for name in self.names}
        failed = [name for name, column in columns.items() if column is None]
        if failed:
            fault, hint = _UNFIT
            raise InputError([(f"{self._what}: column {_list(failed)} {fault}", hint)])
        return self._pyarrow.table(list(columns.values()), names=self.names)

    def release_unused(self) -> None:
        """Gives back memory that is kept and not needed."""
        release_unused(len(self.frame))

    def _converted(self, name: str) -> Any | None:
        """A column as an array of pyarrow; None if it can't be one.

        ``Table.from_pandas`` would do the same, and look at every cell once more to describe the column for pandas.
        """
        column = self.frame[name]
        if hasattr(column.dtype, "fill_value"):
            return None  # Arrow lacks sparse columns.
        try:
            if _holds_objects(column.dtype) and len(column) > _ROWS_OF_OBJECTS:
                return self._widened(self._converted_in_pieces(column))
            return self._widened(self._pyarrow.array(column, from_pandas=True))
        except (self._pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            # A message of pyarrow may hold a cell, so it is not passed on.
            return None

    def _converted_in_pieces(self, column: Any) -> Any:
        """A column of Python's objects, converted piece by piece.

        Python hears of Ctrl-C between two pieces only, and a million decimals take longer than a second.
        """
        pyarrow = self._pyarrow
        starts = range(0, len(column), _ROWS_OF_OBJECTS)
        pieces = [pyarrow.array(column.iloc[start : start + _ROWS_OF_OBJECTS], from_pandas=True) for start in starts]
        kinds = {piece.type for piece in pieces if piece.type != pyarrow.null()}
        if len(kinds) > 1 and all(pyarrow.types.is_decimal128(kind) for kind in kinds):
            scale = max(kind.scale for kind in kinds)
            precision = max(kind.precision - kind.scale for kind in kinds) + scale
            kinds = {pyarrow.decimal128(precision, scale)} if precision <= _MOST_DIGITS else kinds
        if len(kinds) > 1:
            # Pieces have different types, so let pyarrow find one type for all values together.
            return pyarrow.array(column, from_pandas=True)
        kind = next(iter(kinds), pyarrow.null())
        chunks = [chunk for piece in pieces for chunk in getattr(piece, "chunks", [piece])]
        return pyarrow.chunked_array([chunk.cast(kind) for chunk in chunks], type=kind)

    def _widened(self, column: Any) -> Any:
        """The column with a type that has room for all its bytes, because pyarrow may choose one that does not."""
        wider = {self._pyarrow.string(): self._pyarrow.large_string(), self._pyarrow.binary(): self._pyarrow.large_binary()}
        is_narrow = column.type in wider and column.nbytes > _MOST_BYTES_OF_STRING
        return column.cast(wider[column.type]) if is_narrow else column


class PolarsColumns:
    """The columns of a DataFrame of polars: one at a time, or all together.

    polars copies all columns if they are asked for together and their pieces differ, and none if they are asked for one by one.
    """

    def __init__(self, frame: Any, what: str) -> None:
        if not hasattr(frame, "columns"):
            raise TypeError(f"{what} must be a DataFrame, not a {type(frame).__name__}: use to_frame()")
        # For such columns polars hands over addresses in memory instead of values.
        objects = [name for name, dtype in frame.schema.items() if str(dtype) == "Object"]
        if objects:
            raise InputError([(f"{what}: column {_list(objects)} holds Python's objects", "convert it, for example to text, or drop it")])
        self._frame = frame
        self.names: list[str] = frame.columns

    def column(self, position: int) -> Any:
        """A frame with one column."""
        column = self._frame.get_column(self.names[position])
        # Arrow's libraries disagree about how a column of type Null is handed over, so it goes as text.
        return (column.cast(sys.modules["polars"].String) if str(column.dtype) == "Null" else column).to_frame()

    def table(self) -> Any:
        """The frame."""
        untyped = [name for name, dtype in self._frame.schema.items() if str(dtype) == "Null"]
        return self._frame.cast(dict.fromkeys(untyped, sys.modules["polars"].String)) if untyped else self._frame

    def release_unused(self) -> None:
        """Gives back memory that is kept and not needed."""
        release_unused(self._frame.height)


# This many Python objects are converted in about a tenth of a second.
_ROWS_OF_OBJECTS = 100_000

# Positions in a column of Arrow's types `string` and `binary` have 31 bits.
_MOST_BYTES_OF_STRING = 2**31 - 1

# The largest number of digits of a decimal of 128 bits.
_MOST_DIGITS = 38


def _holds_objects(dtype: Any) -> bool:
    return bool(dtype == object) or getattr(dtype, "storage", None) == "python"


# Reading a frame with fewer rows leaves little memory to be given back.
_MANY_ROWS = 100_000


def release_unused(n_rows: int) -> None:
    """Gives freed memory back to the system, if tables of so many rows left much of it.

    pyarrow and the C library keep freed memory for later use. After a large frame that is as much as the work itself needs.
    """
    if n_rows < _MANY_ROWS:
        return
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if sys.platform == "linux":
        import ctypes

        # Only glibc has it.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


_UNFIT = ("holds values of several types, or of a type that Arrow lacks", "convert it: df[name] = df[name].astype(str)")


def source_of(data: Any, what: str = "data") -> Source:
    """Tells what a table is, and how its rows are read."""
    if isinstance(data, (str, os.PathLike)):
        return Source("file", os.fspath(data))
    library = type(data).__module__.partition(".")[0]
    if library == "pandas":
        columns = PandasColumns(data, what)
        return Source("pandas", columns, columns.frame)
    if library == "polars":
        if hasattr(data, "collect"):
            data = data.collect()
        return Source("polars", PolarsColumns(data, what), data)
    if library in ("duckdb", "_duckdb") and not hasattr(data, "__arrow_c_stream__") and hasattr(data, "to_arrow_table"):
        return Source("duckdb", data.to_arrow_table(), data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        kind = {"pyarrow": "pyarrow", "duckdb": "duckdb", "_duckdb": "duckdb"}.get(library, "arrow")
        return Source(kind, data, data)
    raise TypeError(
        f"{what} must be a table or a path, not {type(data).__name__}: give a DataFrame of pandas or polars, a table of "
        "pyarrow, a relation of DuckDB, another object with __arrow_c_stream__, or the path of a CSV, Parquet or Arrow file"
    )


def _list(names: Any) -> str:
    return ", ".join(repr(name) for name in names)


def _import(library: str, purpose: str) -> Any:
    try:
        return __import__(library)
    except ImportError:
        pass
    raise MissingLibrary([(f"{library} is needed {purpose}, and is not installed", f"pip install {library}")])


def to_arrow(table: ArrowTable, like: Any = None, copied: frozenset[str] = frozenset()) -> Any:
    """A table of pyarrow. Categories of columns that were copied have the order they have in ``like``."""
    pyarrow = _import("pyarrow", "to make a table of pyarrow")
    out = pyarrow.table(table)
    if not hasattr(like, "column"):
        return out
    for position, field in enumerate(out.schema):
        if field.name in copied and pyarrow.types.is_dictionary(field.type) and field.type.ordered:
            in_order = pyarrow.chunked_array(like.column(field.name)).unify_dictionaries().chunk(0).dictionary
            cells = out.column(position).cast(field.type.value_type)
            categories = pyarrow.array(_shown(in_order.to_pylist(), cells.unique().to_pylist()), field.type.value_type)
            ids = pyarrow.compute.index_in(cells, value_set=categories, skip_nulls=True).cast(field.type.index_type)
            pieces = [pyarrow.DictionaryArray.from_arrays(chunk, categories, ordered=True) for chunk in ids.chunks]
            out = out.set_column(position, field, pyarrow.chunked_array(pieces, field.type))
    return out


def to_polars(table: ArrowTable, like: Any = None, copied: frozenset[str] = frozenset()) -> Any:
    """A DataFrame of polars. Enumerations that were copied have the order they have in ``like``."""
    polars = _import("polars", "to make a DataFrame of polars")
    out = polars.DataFrame(table)
    for name in copied.intersection(like.columns if like is not None else ()):
        if isinstance(like.schema[name], polars.Enum):
            texts = out[name].cast(polars.String)
            categories = _shown(like.schema[name].categories, texts.unique())
            out = out.with_columns(texts.cast(polars.Enum(categories)))
    return out


def _shown(categories: Any, cells: Any) -> list[Any]:
    """The categories that the release shows, in their order. Others would tell who was left out."""
    shown = set(cells)
    return [category for category in categories if category in shown]


def to_pandas(table: ArrowTable, like: Any = None, copied: frozenset[str] = frozenset()) -> Any:
    """A DataFrame of pandas. Columns that were copied have the type they have in ``like``."""
    pandas = _import("pandas", "to make a DataFrame of pandas")
    pyarrow = _import("pyarrow", "to make a DataFrame of pandas")
    columns = {}
    for position, name in enumerate(table.column_names):
        # Columns become Series one by one, because a DataFrame for each of them would take twice as long.
        arrow = pyarrow.table(table.column(position)).column(0)
        dtype = like[name].dtype if like is not None and name in copied and name in like.columns else None
        if dtype is not None and hasattr(dtype, "__from_arrow__") and not isinstance(dtype, pandas.CategoricalDtype):
            columns[name] = pandas.Series(dtype.__from_arrow__(arrow))
            continue
        column = arrow.to_pandas()
        columns[name] = column if dtype is None or dtype == column.dtype else _typed(pandas, column, dtype)
    release_unused(table.num_rows)
    return pandas.DataFrame(columns, copy=False)


def _typed(pandas: Any, column: Any, dtype: Any) -> Any:
    """A column with the type that it has in the frame that came in, where it can have that."""
    if isinstance(dtype, pandas.CategoricalDtype):
        categories = _shown(dtype.categories, column.dropna().unique())
        return column.astype(object).astype(pandas.CategoricalDtype(categories, dtype.ordered))
    if dtype == object:
        texts = column.astype(object)
        return texts.where(texts.notna(), None)
    try:
        return column.astype(dtype)
    except (TypeError, ValueError):
        return column


def to_duckdb(table: ArrowTable, like: Any = None, copied: frozenset[str] = frozenset()) -> Any:
    """A relation of DuckDB. Enumerations that were copied have the order they have in ``like``."""
    duckdb = _import("duckdb", "to make a relation of DuckDB")
    rows = _import("pyarrow", "to make a relation of DuckDB").table(table)
    types = dict(zip(getattr(like, "columns", ()), getattr(like, "types", ())))
    columns = []
    for name in rows.column_names:
        column = '"' + name.replace('"', '""') + '"'
        if name in copied and name in types and types[name].id == "enum":
            (_, categories), *_ = types[name].children
            texts = ", ".join("'" + text.replace("'", "''") + "'" for text in _shown(categories, rows[name].unique().to_pylist()))
            column = f"{column}::ENUM({texts}) AS {column}" if texts else column
        columns.append(column)
    return duckdb.from_arrow(rows).project(", ".join(columns))


def like_source(table: ArrowTable, source: Source | None, copied: frozenset[str]) -> Any:
    """A released table as what came in; a table that came from a file is a :class:`kohort.ArrowTable`."""
    if source is None or source.kind not in _MAKERS:
        return table
    return _MAKERS[source.kind](table, source.like, copied)


_MAKERS = {"pandas": to_pandas, "polars": to_polars, "pyarrow": to_arrow, "duckdb": to_duckdb}
