"""Hierarchies: how the values of a quasi column are generalized."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _kohort
from ._errors import InputError
from ._html import page, tree_html
from ._words import Classification, Level, Side


class Hierarchy:
    """How the values of a quasi column are generalized.

    Made by :func:`steps`, :func:`mask`, :func:`date`, :func:`dates`, :func:`flat`, :func:`hierarchy_file` and
    :func:`hierarchy`. In a notebook it shows its tree.
    """

    def __init__(self, setting: Any, *, text: str | None = None, is_edges: bool = False, words: str = "") -> None:
        self._setting = setting
        self._text = text
        self._is_edges = is_edges
        self._words = words

    def _in_spec(self, file: str) -> tuple[Any, dict[str, str]]:
        """The setting in a spec, and texts that stand in for files."""
        if self._text is None:
            return self._setting, {}
        return ({"edges": file} if self._is_edges else file), {file: self._text}

    def tree(self, values: Iterable[Any] | None = None) -> Tree:
        """The tree. A rule such as :func:`steps` needs the values that it is made for.

        >>> print(steps(5, 10).tree([23, 27, 31]))
        *  (3)
          [20,29]  (2)
            [20,24]  (1)
              23
            [25,29]  (1)
              27
          [30,39]  (1)
            [30,34]  (1)
              31
        """
        if self._text is not None:
            return Tree(json.loads(_kohort.tree(self._text, self._is_edges, "hierarchy")))
        is_edges = isinstance(self._setting, Mapping) and "edges" in self._setting
        file = self._setting["edges"] if is_edges else self._setting
        if isinstance(file, str) and file not in ("date", "flat"):
            return Tree(json.loads(_kohort.tree(Path(file).read_text(encoding="utf-8"), is_edges, file)))
        if values is None:
            raise TypeError("this hierarchy is made from the values of a column: give some, as in tree([23, 27, 31])")
        columns = {"column": {"role": "quasi", "hierarchy": self._setting}}
        document = {"k": 1, "tables": {"table": {"file": "-", "columns": columns}}}
        texts = list(dict.fromkeys(str(value) for value in values if not _is_missing(value)))
        return Tree(json.loads(_kohort.tree_of_values(document, texts)))

    def __repr__(self) -> str:
        return f"<hierarchy: {self._words}>"

    def _repr_html_(self) -> str:
        try:
            tree = self.tree()
        except TypeError:
            return page(f"<p><b>hierarchy</b> {_escaped(self._words)}</p>")
        return tree._repr_html_()


class Tree:
    """The nodes of a hierarchy, from the root to the values."""

    def __init__(self, nodes: list[tuple[str, int | None, int]]) -> None:
        self._nodes = nodes
        self._children: dict[int | None, list[int]] = {}
        for position, (_, parent, _) in enumerate(nodes):
            self._children.setdefault(parent, []).append(position)

    @property
    def root(self) -> str:
        return self._nodes[self._children[None][0]][0]

    @property
    def n_values(self) -> int:
        return self._nodes[self._children[None][0]][2]

    @property
    def height(self) -> int:
        """How many labels stand above the deepest value."""
        return max(len(row) for row in self.rows()) - 1

    def rows(self) -> list[tuple[str, ...]]:
        """A row per value, from the value to the root.

        >>> hierarchy({"*": {"health": ["nurse", "doctor"], "education": ["teacher"]}}).tree().rows()
        [('nurse', 'health', '*'), ('doctor', 'health', '*'), ('teacher', 'education', '*')]
        """
        rows: list[tuple[str, ...]] = []
        open_nodes: list[tuple[int, tuple[str, ...]]] = [(self._children[None][0], ())]
        while open_nodes:
            node, above = open_nodes.pop()
            path = (self._nodes[node][0], *above)
            children = self._children.get(node, [])
            if not children:
                rows.append(path)
            open_nodes.extend((child, path) for child in reversed(children))
        return rows

    def to_csv(self) -> str:
        """The file of the hierarchy, ``value;parent;...;root``.

        >>> print(steps(5, 10).tree([23, 31]).to_csv())
        23;[20,24];[20,29];*
        31;[30,34];[30,39];*
        <BLANKLINE>
        """
        return "".join(";".join(map(_quoted_if_needed, row)) + "\n" for row in self.rows())

    def __str__(self) -> str:
        lines = []
        open_nodes = [(self._children[None][0], 0)]
        while open_nodes:
            node, depth = open_nodes.pop()
            label, _, n_values = self._nodes[node]
            children = self._children.get(node, [])
            lines.append("  " * depth + label + (f"  ({n_values})" if children else ""))
            open_nodes.extend((child, depth + 1) for child in reversed(children))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<tree of {self.n_values} values below {self.root!r}>"

    def _repr_html_(self) -> str:
        return tree_html(self._nodes, self._children)


def _escaped(text: str) -> str:
    import html

    return html.escape(text)


def steps(*widths: float) -> Hierarchy:
    """Ranges of numbers of these widths, the narrowest first; each is a multiple of the one before.

    >>> steps(5, 10, 50)
    <hierarchy: ranges of 5, 10, 50>
    """
    return Hierarchy({"steps": list(widths)}, words=f"ranges of {', '.join(map(str, widths))}")


def mask(side: Side = "right") -> Hierarchy:
    """Hides characters from one side: 88512 becomes 8851*, 885** and so on."""
    return Hierarchy({"mask": side}, words=f"characters masked from the {side}")


def date() -> Hierarchy:
    """Days, months, quarters, years, decades."""
    return Hierarchy("date", words="days, months, quarters, years, decades")


def dates(*levels: Level) -> Hierarchy:
    """Some levels of dates: ``dates("month", "year")``."""
    return Hierarchy({"dates": list(levels)}, words=f"dates by {', '.join(levels)}")


def flat() -> Hierarchy:
    """One level: a cell shows its value, or the root that stands for all values."""
    return Hierarchy("flat", words="the value, or all values")


def hierarchy_file(path: str | os.PathLike[str], *, edges: bool = False) -> Hierarchy:
    """A file with a row per value, ``value;parent;...;root``, which is ARX's format, or with rows ``child;parent``."""
    name = os.fspath(path)
    return Hierarchy({"edges": name} if edges else name, words=f"file {name}")


def codes(classification: Classification, values: Iterable[Any]) -> Hierarchy:
    """The groups of codes that say where they belong: ICD-10, ISCO-08, NUTS, or countries by two or three letters.

    ``values`` are the codes of a column. All countries are listed; of other classifications only these codes are, so a released
    hierarchy tells which ones occur: give all codes that exist, or withhold it with ``hierarchies="withhold"``.

    >>> print(codes("icd10", ["E11.9", "E10", "C50.1"]).tree())
    *  (3)
      II C00-D48  (1)
        C50-C50  (1)
          C50.-  (1)
            C50.1
      IV E00-E90  (2)
        E10-E14  (2)
          E10.-  (1)
            E10
          E11.-  (1)
            E11.9
    """
    texts = list(dict.fromkeys(str(value) for value in values if not _is_missing(value)))
    made = hierarchy(Tree(json.loads(_kohort.tree_of_codes(classification, texts))))
    return Hierarchy(None, text=made._text, words=f"{len(texts)} codes of {classification}")


def hierarchy(tree: Any) -> Hierarchy:
    """A hierarchy from a dict, from rows, from a frame, or from a :class:`Tree`.

    A dict maps each label to its parent, or nests: ``{"*": {"health": ["nurse", "doctor"], "education": ["teacher"]}}``. Rows
    go from a value to the root; so do the rows of a frame, one column per level, in the order of its columns. Missing cells of
    a frame are left out, so rows may differ in length.

    >>> jobs = hierarchy({"*": {"health": ["nurse", "doctor"], "education": ["teacher"]}})
    >>> print(jobs.tree())
    *  (3)
      health  (2)
        nurse
        doctor
      education  (1)
        teacher
    >>> print(hierarchy([["nurse", "health", "*"], ["teacher", "education", "*"]]).tree().n_values)
    2
    """
    if isinstance(tree, Hierarchy):
        return tree
    if isinstance(tree, (str, os.PathLike)):
        return hierarchy_file(tree)
    if isinstance(tree, Tree):
        rows = tree.rows()
    elif isinstance(tree, Mapping):
        if all(isinstance(parent, str) for parent in tree.values()):
            return Hierarchy(None, text=_lines(tree.items()), is_edges=True, words=f"{len(tree)} labels and their parents")
        rows = list(_nested(tree, ()))
    elif hasattr(tree, "__arrow_c_stream__") or type(tree).__module__.partition(".")[0] == "pandas":
        rows = _frame_rows(tree)
    else:
        rows = [tuple(row) for row in tree]
    return Hierarchy(None, text=_lines(rows), words=f"{len(rows)} values with their paths")


def _nested(tree: Any, above: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    if isinstance(tree, Mapping):
        for label, below in tree.items():
            if below:
                yield from _nested(below, (str(label), *above))
            else:
                yield (str(label), *above)
    elif isinstance(tree, str):
        yield (tree, *above)
    else:
        for value in tree:
            yield from _nested(value if isinstance(value, Mapping) else str(value), above)


def _frame_rows(frame: Any) -> list[tuple[str, ...]]:
    if hasattr(frame, "itertuples"):
        rows = frame.itertuples(index=False, name=None)
    elif hasattr(frame, "iter_rows"):
        rows = frame.iter_rows()
    elif hasattr(frame, "to_pydict"):
        rows = zip(*frame.to_pydict().values())
    else:
        rows = frame.fetchall()
    return [tuple(str(cell) for cell in row if not _is_missing(cell)) for row in rows]


def _is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, or one of the ways in which pandas says that there is no value."""
    return cell is None or type(cell).__name__ == "NAType" or bool(cell != cell)


def _lines(rows: Iterable[Iterable[Any]]) -> str:
    return "".join(";".join(_quoted(str(label)) for label in row) + "\n" for row in rows)


def _quoted(label: str) -> str:
    if "\n" in label or "\r" in label:
        hint = "a label of a hierarchy can't contain one: replace it, in the table as well"
        raise InputError([("a label of a hierarchy contains a line break", hint)])
    return '"' + label.replace('"', '""') + '"'


def _quoted_if_needed(label: str) -> str:
    quoted = _quoted(label)
    return label if label and ";" not in label and '"' not in label else quoted
