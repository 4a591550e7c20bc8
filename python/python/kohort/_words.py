"""Words and names that parameters take, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

#: One column or several.
Names = str | Iterable[str]

#: Columns, or what is said of each of them.
Columns = str | Iterable[str] | Mapping[str, Any]

Algorithm = Literal["auto", "mondrian", "top-down", "datafly", "cluster", "full-domain", "miracle", "miraclex"]
Cells = Literal["labels", "bounds", "midpoint"]
Distance = Literal["equal", "ordered", "hierarchical"]
Format = Literal["csv", "csv.gz", "csv.zst", "parquet", "arrow", "arrows"]
Hierarchies = Literal["shown", "withhold"]
Keys = Literal["surrogate", "keep"]
Leftovers = Literal["merge", "suppress"]
Level = Literal["day", "month", "quarter", "year", "decade"]
Order = Literal["sorted", "input"]
Preset = Literal["ema", "cms"]
Side = Literal["right", "left"]
Verdict = Literal["verified", "in_part", "not_met"]
ValueType = Literal["integer", "decimal", "float", "date", "timestamp", "text", "boolean"]
