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
    frame that came in, where a release of it should look like it.
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
            return self._pyarrow.array(column, from_pandas=True)
        except (self._pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            # A message of pyarrow may hold a cell, so it is not passed on.
            return None


class PolarsColumns:
    """The columns of a DataFrame of polars: one at a time, or all together.

    polars copies all columns if they are asked for together and their pieces differ, and none if they are asked for one by one.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names: list[str] = frame.columns

    def column(self, position: int) -> Any:
        """A frame with one column."""
        return self._frame.get_column(self.names[position]).to_frame()

    def table(self) -> Any:
        """The frame."""
        return self._frame

    def release_unused(self) -> None:
        """Gives back memory that is kept and not needed."""
        release_unused(self._frame.height)


# Frames with fewer rows leave little behind.
_MANY_ROWS = 100_000


def release_unused(n_rows: int) -> None:
    """Gives memory back to the system that pyarrow and the C library keep for later, if tables of so many rows left much of it.

    Both keep memory that was freed. Next to a large frame that would be as much as the work itself needs.
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
        return Source("polars", PolarsColumns(data) if hasattr(data, "columns") and hasattr(data, "select") else data)
    if library in ("duckdb", "_duckdb") and not hasattr(data, "__arrow_c_stream__") and hasattr(data, "to_arrow_table"):
        return Source("duckdb", data.to_arrow_table())
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        kind = {"pyarrow": "pyarrow", "duckdb": "duckdb", "_duckdb": "duckdb"}.get(library, "arrow")
        return Source(kind, data)
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


def to_arrow(table: ArrowTable) -> Any:
    """A table of pyarrow."""
    return _import("pyarrow", "to make a table of pyarrow").table(table)


def to_polars(table: ArrowTable) -> Any:
    """A DataFrame of polars."""
    return _import("polars", "to make a DataFrame of polars").DataFrame(table)


def to_pandas(table: ArrowTable, like: Any = None, copied: frozenset[str] = frozenset()) -> Any:
    """A DataFrame of pandas. Columns that were copied have the type they have in ``like``."""
    pandas = _import("pandas", "to make a DataFrame of pandas")
    pyarrow = _import("pyarrow", "to make a DataFrame of pandas")
    columns = {}
    for position, name in enumerate(table.column_names):
        arrow = pyarrow.table(table.column(position))
        dtype = like[name].dtype if like is not None and name in copied and name in like.columns else None
        if hasattr(dtype, "__from_arrow__") and not isinstance(dtype, pandas.CategoricalDtype):
            columns[name] = pandas.Series(dtype.__from_arrow__(arrow.column(0)))
            continue
        column = arrow.to_pandas()[name]
        columns[name] = column if dtype is None or dtype == column.dtype else _typed(pandas, column, dtype)
    release_unused(table.num_rows)
    return pandas.DataFrame(columns, copy=False)


def _typed(pandas: Any, column: Any, dtype: Any) -> Any:
    """A column with the type that it has in the frame that came in, where it can have that."""
    if isinstance(dtype, pandas.CategoricalDtype):
        # Categories that nobody in the release has would tell who was left out.
        shown = set(column.dropna().unique())
        categories = [category for category in dtype.categories if category in shown]
        return column.astype(object).astype(pandas.CategoricalDtype(categories, dtype.ordered))
    if dtype == object:
        return column
    try:
        return column.astype(dtype)
    except (TypeError, ValueError):
        return column


def to_duckdb(table: ArrowTable) -> Any:
    """A relation of DuckDB."""
    duckdb = _import("duckdb", "to make a relation of DuckDB")
    return duckdb.from_arrow(_import("pyarrow", "to make a relation of DuckDB").table(table))


def like_source(table: ArrowTable, source: Source | None, copied: frozenset[str]) -> Any:
    """A released table as what came in; a table that came from a file is a :class:`kohort.ArrowTable`."""
    kind = source.kind if source is not None else "file"
    if kind == "pandas":
        return to_pandas(table, source.like if source is not None else None, copied)
    if kind == "polars":
        return to_polars(table)
    if kind == "pyarrow":
        return to_arrow(table)
    if kind == "duckdb":
        return to_duckdb(table)
    return table
