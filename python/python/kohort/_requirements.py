"""What must hold of a sensitive column in every class, under the names that the literature uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._words import Distance


@dataclass(frozen=True)
class Requirement:
    """A requirement on a sensitive column: keys of the column in a spec.

    Several are given as a list, or joined with ``&``.
    """

    settings: Mapping[str, Any]

    def __and__(self, other: Requirement) -> Requirement:
        return Requirement(join([self, other]))

    def __repr__(self) -> str:
        return " & ".join(f"{key}={value}" for key, value in self.settings.items())


def join(requirements: Any) -> dict[str, Any]:
    """The settings of one requirement, several, a dict of settings, or None."""
    if requirements is None:
        return {}
    if isinstance(requirements, Requirement):
        return dict(requirements.settings)
    if isinstance(requirements, Mapping):
        return dict(requirements)
    settings: dict[str, Any] = {}
    for requirement in requirements:
        for key, value in join(requirement).items():
            if settings.get(key, value) != value:
                raise TypeError(f"'{key}' is asked twice of the same column: {settings[key]} and {value}")
            settings[key] = value
    return settings


def l_diversity(l: int) -> Requirement:  # noqa: E741
    """Every class has at least ``l`` distinct values. Others call this p-sensitivity.

    >>> l_diversity(3)
    l=3
    """
    return Requirement({"l": l})


def p_sensitivity(p: int) -> Requirement:
    """Every class has at least ``p`` distinct values: :func:`l_diversity` under the name of p-sensitive k-anonymity."""
    return Requirement({"p": p})


def entropy_l_diversity(l: float) -> Requirement:  # noqa: E741
    """The entropy of the values of every class is at least log ``l``."""
    return Requirement({"entropy_l": l})


def recursive_diversity(c: float, l: int) -> Requirement:  # noqa: E741
    """Recursive (c,l)-diversity: the most frequent value is less than ``c`` times as frequent as all from the l-th on."""
    return Requirement({"recursive_cl": [c, l]})


def t_closeness(t: float, distance: Distance = "equal") -> Requirement:
    """The values of every class are distributed nearly as in the whole table.

    ``distance`` says how far two values are apart: ``equal``, ``ordered``, or ``hierarchical``, which needs a hierarchy of
    the column.

    >>> t_closeness(0.2, "ordered") & l_diversity(2)
    t=0.2 & distance=ordered & l=2
    """
    return Requirement({"t": t, "distance": distance})


def alpha(share: float) -> Requirement:
    """No value has a larger share of a class than this, as in (alpha,k)-anonymity."""
    return Requirement({"alpha": share})


def beta_likeness(beta: float) -> Requirement:
    """Within a class, the share of a value exceeds its share of the whole table by at most ``beta`` times the latter.

    With ``beta=1``, a value is at most twice as frequent in a class as in the table.
    """
    return Requirement({"beta": beta})


def enhanced_beta_likeness(beta: float) -> Requirement:
    """beta-likeness with a bound that is stricter for frequent values."""
    return Requirement({"enhanced_beta": beta})
