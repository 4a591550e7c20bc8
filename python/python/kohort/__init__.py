"""Releases tables about people so that nobody can be told apart from k-1 others, and proves it.

>>> import kohort
>>> found = kohort.check("examples/clinic/patients.csv", quasi=["birth", "sex", "postcode"])
>>> found.unique_persons, found.persons
(5000, 5000)
"""

from . import ml
from ._errors import (
    Cancelled,
    CannotTell,
    Fault,
    FileError,
    InputError,
    KohortError,
    MissingLibrary,
    NotMet,
    Report,
    RequirementUnreachable,
    RiskError,
)
from ._estimate import Estimate, Figure, estimate, estimate_by
from ._explore import Explored, Run, Series, explore
from ._functions import (
    Audit,
    Check,
    Risks,
    Suggestion,
    Suggestions,
    Verification,
    anonymize,
    apply,
    audit,
    check,
    schema,
    suggest,
    verify,
)
from ._hierarchy import Hierarchy, Tree, codes, date, dates, flat, hierarchy, hierarchy_file, mask, steps
from ._kohort import ArrowTable, __version__
from ._release import Release, WrittenRelease
from ._report import Documents, report
from ._requirements import (
    Requirement,
    alpha,
    beta_likeness,
    enhanced_beta_likeness,
    entropy_l_diversity,
    l_diversity,
    p_sensitivity,
    recursive_diversity,
    t_closeness,
)
from ._spec import Audience, Coalition, Column, MissingValue, PlannedCells, Register, Spec, Table, quantile

__all__ = [
    "ArrowTable",
    "Audience",
    "Audit",
    "Cancelled",
    "CannotTell",
    "Check",
    "Coalition",
    "Column",
    "Documents",
    "Estimate",
    "Explored",
    "Fault",
    "Figure",
    "FileError",
    "Hierarchy",
    "InputError",
    "KohortError",
    "MissingLibrary",
    "MissingValue",
    "NotMet",
    "PlannedCells",
    "Register",
    "Release",
    "Report",
    "Requirement",
    "RequirementUnreachable",
    "RiskError",
    "Risks",
    "Run",
    "Series",
    "Spec",
    "Suggestion",
    "Suggestions",
    "Table",
    "Tree",
    "Verification",
    "WrittenRelease",
    "__version__",
    "alpha",
    "anonymize",
    "apply",
    "audit",
    "beta_likeness",
    "check",
    "codes",
    "date",
    "dates",
    "enhanced_beta_likeness",
    "entropy_l_diversity",
    "estimate",
    "estimate_by",
    "explore",
    "flat",
    "hierarchy",
    "hierarchy_file",
    "l_diversity",
    "mask",
    "ml",
    "p_sensitivity",
    "quantile",
    "recursive_diversity",
    "report",
    "schema",
    "steps",
    "suggest",
    "t_closeness",
    "verify",
]
