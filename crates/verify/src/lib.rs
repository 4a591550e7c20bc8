//! Recounts a finished release from its rows alone.
//!
//! # Guarantee   a [`Verified<Release>`](Verified) exists only if every check of this crate passed
//! # Independence
//! The crate shares no code and no method with `kohort-core`. It finds classes by grouping released cells, decides by
//! hierarchy paths and parsed bounds whether a label covers a value, and computes every requirement anew from its
//! definition in [`kohort_model::Requirement`]. It fails closed: a property that can't be shown to hold counts as
//! violated.
//!
//! | question | function |
//! | --- | --- |
//! | what does any table satisfy? | [`measure`] |
//! | how many look like each row, and which few columns single it out? | [`class_size_of_rows`], [`suda`] |
//! | how easily is a sample found in its population? | [`PopulationRisk`] |
//! | may this release leave memory? | [`verify_release`] |
//! | may these rows leave an A-view? | [`verify_block`] |
//! | may a step of a view over changing data be shown? | [`verify_step`] |
//! | are changed cells what the spec makes of the private ones? | [`verify_transformed`] |
//! | does the file read back hold that release? | [`verify_written`] |
//! | may a release leave that was made cell by cell, and does its file hold it? | [`CellsVerifier`] |
//! | what do released files show by themselves? | [`verify_alone`] |
//! | can the released rows have come from this input? | [`verify_against`] |
//! | does the manifest say what was counted? | [`check_claims`] |
//! | what do several releases of the same persons show together? | [`audit`] |
//! | what do released cells stand for, by the manifest alone? | [`Reading`], [`Listing`] |
//! | which mistakes of a spec does no requirement notice? | [`find_risks`] |
//! | all of this for a release beside a register | [`verify_joined`], [`verify_joined_written`], [`verify_joined_alone`], [`verify_joined_against`] |
//! | all of this for many tables | [`verify_tables`], [`verify_tables_written`], [`verify_tables_alone`], [`verify_tables_against`] |
//!
//! The functions for one table take [`Asked`]: requirements on classes in all quasi columns, or audiences, each of
//! which is counted by itself.
//!
//! The verifier trusts tables as they were read, in particular that a table's dictionary holds no text twice. It trusts
//! nothing that a release claims. A [`Violation`] names columns and row numbers, but never contains a cell.

mod applied;
mod asked;
mod audit;
mod block;
#[cfg(test)]
mod cases;
mod cells;
mod changing;
mod claims;
mod count;
mod findings;
mod joined;
mod limit;
mod looks;
#[cfg(test)]
mod oracle;
mod origins;
mod population;
mod pseudonym;
mod reading;
mod risks;
mod single;
mod structure;
mod suda;
mod tables;
mod transformed;
mod verified;
mod violation;

pub use applied::verify_applied;
pub use asked::Asked;
pub use audit::{AuditFindings, AuditedAudience, AuditedRelease, Hidden, Knows, audit};
pub use block::{BlockOf, ReadAsTable, verify_block};
pub use cells::{
    CellsVerifier, CountedRows, FileVerifier, OriginCut, PartsAgainst, PartsCounter, ValueCounts, VerifiedCell,
    joined_findings,
};
pub use changing::{
    AtomStep, Part, Refresh, RefreshedAtom, Seen, ShownValues, Step, StepColumn, StepError, StepErrors, StepFindings,
    StepMember, verify_refresh, verify_step,
};
pub use claims::{ClaimFindings, PrivateFacts, RegisterFacts, WrongClaim, check_claims};
pub use count::loss::{LossFindings, PersonLoss};
pub use findings::{
    AudienceFindings, Counted, Findings, JoinedFindings, LearnedFindings, LeastAndMost, ReferenceFindings, RowsOf,
    SensitiveFindings, Skipped, Suppressed, TableFindings, TogetherFindings, TogetherWithin,
};
pub use joined::{
    AskedOfJoin, ToldApart, verify_joined, verify_joined_against, verify_joined_alone, verify_joined_written,
};
pub use limit::{SuppressionLimit, too_many_rows_left_out};
pub use looks::{Look, common_looks};
pub use population::{PopulationModel, PopulationRisk};
pub use pseudonym::{find_non_pseudonyms, verify_pseudonyms};
pub use reading::listing::{Listing, ListingErrorKind};
pub use reading::meaning::key_print;
pub use reading::{RangeEnd, Reading, ShownLabel};
pub use risks::{
    BlatantRisk, Followers, IdentifierKind, PersonColumn, RisksInCells, find_diversity_risks, find_risks, person_column,
};
pub use single::against::verify_against;
pub use single::measure::{measure, verify_alone};
pub use single::records::class_size_of_rows;
pub use single::release::verify_release;
pub use single::written::verify_written;
pub use suda::{MOST_SETS, SudaFindings, n_sets_of_columns, suda};
pub use tables::{
    LinkKind, ReleasedLink, TablesAgainst, measure_tables, persons_of_rows, verify_tables, verify_tables_against,
    verify_tables_alone, verify_tables_written,
};
pub use transformed::{Transformed, verify_transformed};
pub use verified::{Verifiable, Verified};
pub use violation::{Violation, Violations};
