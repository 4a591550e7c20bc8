import os
from collections.abc import Callable
from typing import Any, final

from typing_extensions import Self

__all__ = [
    "ArrowTable",
    "Job",
    "Release",
    "__version__",
    "apply",
    "audit",
    "bar_chart",
    "check",
    "curve_chart",
    "estimate",
    "explore",
    "histogram",
    "owner_report",
    "pair_chart",
    "report",
    "schema",
    "suggest",
    "tree",
    "tree_of_codes",
    "tree_of_values",
    "verify",
    "write_report",
]

__version__: str

_Path = str | os.PathLike[str]
_Hook = Callable[[str, int, int], Any] | None

@final
class ArrowTable:
    """A table in memory. pyarrow, polars, pandas, DuckDB and others take it as it is."""

    @staticmethod
    def of(rows: Any) -> ArrowTable: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def column(self, position: int) -> ArrowTable: ...
    @property
    def types(self) -> list[str]: ...
    def write_arrow(self, path: _Path) -> None: ...

@final
class Job:
    def __new__(cls, document: dict[str, Any], folder: _Path) -> Self: ...
    @staticmethod
    def from_text(text: str, file: _Path) -> Job: ...
    @property
    def toml(self) -> str: ...
    @property
    def files(self) -> list[tuple[str, _Path]]: ...
    @property
    def registers(self) -> list[str]: ...
    def instead_of(self, file: _Path, rows: Any, threads: int | None = None, hook: _Hook = None) -> Job: ...
    def instead_of_columns(self, file: _Path, frame: Any) -> Job: ...
    def instead_of_text(self, file: _Path, text: str) -> Job: ...
    def asking(self, k: int | None = None, effort: int | None = None) -> Job: ...
    def too_large(self, n_bytes: int | None = None) -> tuple[int, int, int] | None: ...
    def plan_in_cells(self, n_bytes: int, threads: int | None = None, hook: _Hook = None) -> tuple[int, int, int, int, int]: ...
    def missing_values(self, threads: int | None = None, hook: _Hook = None) -> list[tuple[str, str, str, int]]: ...
    def anonymize(
        self,
        cells: str = "labels",
        seed: int | None = None,
        accept_risks: bool = False,
        threads: int | None = None,
        hook: _Hook = None,
    ) -> Release: ...
    def write_in_cells(
        self,
        folder: _Path,
        n_bytes: int,
        format: str | None = None,
        force: bool = False,
        seed: int | None = None,
        accept_risks: bool = False,
        threads: int | None = None,
        hook: _Hook = None,
    ) -> tuple[str, list[str]]: ...

@final
class Release:
    @property
    def manifest(self) -> str: ...
    @property
    def findings(self) -> str: ...
    @property
    def rows_left_out(self) -> list[int]: ...
    @property
    def total_changes(self) -> list[tuple[str, str, float, float]]: ...
    @property
    def own_values_listed(self) -> list[str]: ...
    def tables(self, threads: int | None = None, hook: _Hook = None) -> list[tuple[str, ArrowTable]]: ...
    def write(
        self,
        folder: _Path,
        format: str | None = None,
        force: bool = False,
        threads: int | None = None,
        hook: _Hook = None,
    ) -> str: ...
    def csv(self) -> str: ...

def apply(
    folder: _Path,
    source: Any,
    document: dict[str, Any],
    settings: dict[str, Any],
    identifiers: list[str],
    drop: list[str],
    person: str | None = None,
    not_in: _Path | None = None,
    max_suppressed: float = 1.0,
    accept_risks: bool = False,
    threads: int | None = None,
    hook: _Hook = None,
) -> Release: ...
def check(
    source: Any,
    document: dict[str, Any],
    has_k: bool,
    n_bytes: int | None = None,
    risks: bool = False,
    suda: int | None = None,
    population: int | None = None,
    threads: int | None = None,
    hook: _Hook = None,
) -> str: ...
def verify(
    folder: _Path,
    against: Job | None = None,
    n_bytes: int | None = None,
    applied_from: _Path | None = None,
    threads: int | None = None,
    hook: _Hook = None,
) -> str: ...
def audit(
    releases: list[str],
    audiences: list[tuple[str, list[str]]],
    hierarchies: dict[str, Any],
    person: str | None = None,
    k: int | None = None,
    threads: int | None = None,
    hook: _Hook = None,
) -> str: ...
def estimate(
    folder: _Path,
    conditions: str,
    hierarchies: dict[str, Any],
    by: str | None = None,
    continuous: bool = False,
    threads: int | None = None,
    hook: _Hook = None,
) -> str: ...
def suggest(source: Any, name: str, file: str, threads: int | None = None, hook: _Hook = None) -> str: ...
def report(folder: _Path, threads: int | None = None, hook: _Hook = None) -> list[tuple[str, str]]: ...
def write_report(folder: _Path, threads: int | None = None, hook: _Hook = None) -> None: ...
def owner_report(
    folder: _Path,
    against: Job,
    out: _Path | None = None,
    costs: bool = False,
    target: str | None = None,
    population: int | None = None,
    threads: int | None = None,
    hook: _Hook = None,
) -> list[tuple[str, str]]: ...
def explore(
    job: Job,
    k: list[int],
    max_suppressed: list[float],
    algorithms: list[str],
    drop_columns: list[str],
    threads: int | None = None,
    hook: _Hook = None,
) -> str: ...
def schema(kind: str) -> str: ...
def tree(text: str, is_edges: bool, place: _Path) -> str: ...
def tree_of_codes(kind: str, values: list[str]) -> str: ...
def tree_of_values(document: dict[str, Any], values: list[str]) -> str: ...
def bar_chart(title: str, unit: str, bars: list[tuple[str, float, str]]) -> str: ...
def pair_chart(
    title: str,
    unit: str,
    series: tuple[str, str],
    pairs: list[tuple[str, tuple[float, str], tuple[float, str]]],
) -> str: ...
def histogram(title: str, x_unit: str, y_unit: str, counts: list[tuple[int, int]]) -> str: ...
def curve_chart(title: str, x_unit: str, y_unit: str, curves: list[tuple[str, list[tuple[float, float, str, bool]]]]) -> str: ...
