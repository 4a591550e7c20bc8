//! Releases tables about people so that nobody can be told apart from k-1 others, loses as little as possible, and proves
//! the result with a verifier that shares no code with the anonymizer.
//!
//! # From a spec file to a release
//!
//! ```no_run
//! # fn main() -> Result<(), kohort::Error> {
//! let release = kohort::Job::read("release.toml")?.anonymize()?; // verified, or an error
//! release.write("out")?;
//! # Ok(())
//! # }
//! ```
//!
//! # From Arrow to Arrow
//!
//! No file and no spec is needed. Every column has a role, and there is no default k: privacy is never guessed.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
//! use kohort::{Hierarchy, LDiversity, Table};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let name: ArrayRef = Arc::new(StringArray::from(vec!["Ann", "Bob", "Cat", "Dan", "Eve", "Fay"]));
//! let age: ArrayRef = Arc::new(Int64Array::from(vec![23, 27, 29, 41, 44, 48]));
//! let zip: ArrayRef = Arc::new(StringArray::from(vec!["88512", "88513", "88590", "10115", "10117", "10119"]));
//! let disease: ArrayRef = Arc::new(StringArray::from(vec!["flu", "gout", "flu", "flu", "gout", "asthma"]));
//! let batch = RecordBatch::try_from_iter([("name", name), ("age", age), ("zip", zip), ("disease", disease)])?;
//!
//! let release = Table::from_batches([batch])?
//!     .identifier("name")
//!     .quasi("age", Hierarchy::steps([10, 50]))
//!     .quasi("zip", Hierarchy::mask_right())
//!     .sensitive("disease", [LDiversity::distinct(2)])
//!     .k(3)
//!     .anonymize()?;
//!
//! assert_eq!(release.manifest().achieved.k, 3);
//! println!("loss {}", release.manifest().loss.lm);
//! let tables = release.to_batches()?;
//! let released = &tables[0].rows.batches()[0];
//! assert_eq!((released.num_rows(), released.num_columns()), (6, 3));
//! # Ok(())
//! # }
//! ```
//!
//! # Where to look
//!
//! | to | use |
//! | --- | --- |
//! | release one table | [`Table`] |
//! | release many tables, to several audiences, or beside a register | [`JobBuilder`], or a spec file and [`Job::read`] |
//! | write, print, or get Arrow batches | [`Release`] |
//! | release a table that is larger than memory | [`Job::write_in_cells`], [`Job::plan_in_cells`]; [`Job::too_large_for`] tells whether it is |
//! | count a table or a release that is larger than memory | [`Check::file_within`], [`verify_within`], [`verify_against_within`] |
//! | count a release again, as its readers or its publisher | [`verify`], [`verify_against`] |
//! | report on a release to people who sign it | [`report`](report()), [`write_report`]; with figures for the owner alone [`report_against`], [`report_against_with`] |
//! | measure any table, also another tool's output, and where its risk comes from | [`Check`] |
//! | read several releases of the same persons together | [`Audit`] |
//! | estimate counts, means and quartiles from a release | [`estimate`](estimate()), [`estimate_by`] |
//! | see what several values of k would cost | [`Job::explore`] |
//! | release new persons in the classes of an earlier release | [`Apply`] |
//! | get a spec to begin with | [`suggest`](suggest()) |
//! | show progress, or cancel | [`Progress`] |
//!
//! # What holds of every release
//!
//! [`Job::anonymize`] is the only way to a [`Release`], and it ends with the verifier, which counts the requirement from its
//! definition in the very cells that will be written. Everything that is written is read back and verified again. If
//! anything fails there is an [`Error`] and no output. See `docs/what-k-anonymity-protects.md` in the repository for what
//! readers may rely on.

mod apply;
mod audit;
mod builder;
mod check;
mod classifications;
mod counts;
mod described;
mod error;
mod estimate;
mod explore;
mod expression;
mod fitting;
mod in_cells;
mod in_parts;
mod job;
mod make;
mod manifest;
mod memory;
mod pool;
mod previous;
mod release;
mod report;
mod suggest;
mod totals;
mod verification;
mod wording;

pub use apply::{Apply, verify_applied};
pub use audit::{Audit, Audited};
pub use builder::{
    Audience, BetaLikeness, Coalition, ColumnRequirement, Hierarchy, JobBuilder, LDiversity, Register, TCloseness,
    Table,
};
pub use check::{Check, Checked, ColumnRisk, RiskOptions, Risks};
pub use classifications::{Classification, classified, make_classified};
pub use counts::{counts, has_sizes, hides_persons};
pub use error::{Error, Report};
pub use estimate::{
    Bounds, Estimate, EstimateOptions, Estimated, GroupBy, NumberEstimate, SensitiveEstimate, ValueEstimate, Widths,
    estimate, estimate_by,
};
pub use explore::{ExploreOptions, Explored, Figures, Outcome, Run, Series};
pub use fitting::{TooLarge, machine_memory};
pub use in_cells::{PlannedCells, WrittenInCells};
pub use job::Job;
pub use make::{ColumnOfFile, make_hierarchy};
pub use manifest::sensitive_columns;
pub use memory::Memory;
pub use release::Release;
pub use report::{
    Costs, OwnerOptions, owner_report_texts, report, report_against, report_against_with, report_texts,
    write_owner_report, write_report,
};
pub use suggest::{Setting, Suggestion, Suggestions, suggest, suggest_batches};
pub use totals::TotalChange;
pub use verification::{
    Verdict, Verification, verify, verify_against, verify_against_with, verify_against_within, verify_with,
    verify_within,
};
pub use wording::{Parameter, Words};

/// The vocabulary: specs, manifests, hierarchies, requirements.
pub use kohort_model as model;
/// The counts and findings of the verifier.
pub use kohort_verify as verifier;

pub use kohort_core::AnonymizeError;
pub use kohort_io::{
    Batches, CellForm, Compression, Existing, Format, LazyColumns, MissingText, NotHandedOver, ReleasedBatches,
    WriteOptions, check_target,
};
pub use kohort_model::{Manifest, Pass, Progress, Requirement, Role, Silent, Spec};
pub use kohort_verify::Knows;
