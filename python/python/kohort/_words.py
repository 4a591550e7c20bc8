"""Words and names that parameters take, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

#: One column or several.
Names = str | Iterable[str]

#: Columns, or what is said of each of them.
Columns = str | Iterable[str] | Mapping[str, Any]

Algorithm = Literal["auto", "mondrian", "top-down", "datafly", "cluster", "full-domain", "miracle", "miraclex"]
Cells = Literal["labels", "bounds", "midpoint"]
Childless = Literal["refuse", "keep"]
Classification = Literal["icd10", "isco", "nuts", "countries"]
Distance = Literal["equal", "ordered", "hierarchical"]
Format = Literal["csv", "csv.gz", "csv.zst", "parquet", "arrow", "arrows"]
Hierarchies = Literal["shown", "withhold"]
Keys = Literal["surrogate", "keep"]
Leftovers = Literal["merge", "suppress"]
Level = Literal["day", "month", "quarter", "year", "decade"]
Order = Literal["sorted", "input"]
Orphans = Literal["refuse", "drop"]
Period = Literal["month", "quarter", "year", "decade"]
Preset = Literal["ema", "cms"]
Side = Literal["right", "left"]
Steer = Literal["all", "common"]
Verdict = Literal["verified", "in_part", "not_met"]
ValueType = Literal["integer", "decimal", "float", "date", "timestamp", "text", "boolean"]


class Read(TypedDict, total=False):
    """How a CSV file is read."""

    separator: str
    encoding: str
    decimal: Literal[".", ","]
    null: str | list[str]
    header: bool
    date_format: str


class Mondrian(TypedDict, total=False):
    """How Mondrian cuts."""

    cuts: Literal["strict", "relaxed"]
    choose: Literal["widest", "round-robin"]


class Datafly(TypedDict, total=False):
    """Of how many rows Datafly makes a block."""

    block: int


class FullDomain(TypedDict, total=False):
    """By which measure levels are the best."""

    objective: Literal["lm", "dm"]


class Clustering(TypedDict, total=False):
    """How persons join clusters, and how their rows are paired."""

    threshold: float
    cluster_limit: int
    pairing: Literal["greedy", "optimal"]


class Registering(TypedDict, total=False):
    """How a table and its registers are put together."""

    method: Literal["auto", "refine", "direct"]
    missing: Literal["skip", "refuse"]
    release: Literal["all", "microdata"]
    unmatched: Literal["doubt", "count"]
