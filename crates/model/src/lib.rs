//! The vocabulary of kohort: the types that all other crates share.
//!
//! This crate contains no algorithm, and knows neither files nor Arrow. It defines
//!
//! - [`Table`] and [`Column`]: a private table as read, every column a dictionary of texts plus one id per row;
//! - [`Value`], [`ValueType`], [`Notation`]: the value that a text spells, for everything that needs order or distance;
//! - [`Hierarchy`]: a tree over a column's values, read from a file or made by rule;
//! - [`Requirement`]: what each class of a release must satisfy;
//! - [`Spec`]: the release a user asks for;
//! - [`Transform`]: what is done to the cells of a column before classes are made;
//! - [`Audiences`]: the recipients of a release, each with quasi columns of its own;
//! - [`Schema`]: how several tables are linked;
//! - [`JoinedRegister`]: a table joined with the public register of its population;
//! - [`Release`], [`Manifest`]: the result.

mod audience;
#[cfg(any(fuzzing, test))]
pub mod fuzzed;
pub mod hierarchy;
mod manifest;
mod note;
mod progress;
pub mod register;
mod release;
pub mod report;
mod requirement;
mod role;
pub mod schema;
pub mod spec;
mod table;
mod transform;
mod value;
mod view;

pub use audience::{Audience, Audiences, Coalition, Steer};
pub use hierarchy::Hierarchy;
pub use manifest::{
    Achieved, AchievedCoalition, AchievedLearned, AchievedSensitive, AppliedManifest, AudienceManifest, BeforeAfter,
    BoundManifest, CoalitionManifest, ColumnManifest, CsvManifest, JoinManifest, LabelsManifest, LinkManifest,
    LinkMeaning, Loss, Manifest, MethodLoss, Persons, PreviousManifest, ReferenceManifest, RegisterManifest,
    RequirementManifest, Risk, SavingsManifest, Setting, Settings, TableManifest, manifest_schema,
};
pub use note::{Note, NoteManifest, WhyNobody};
pub use progress::{Pass, Progress, Quiet, Silent};
pub use register::{InRegister, JoinedRegister, Presence, PreviousRelease, ReadBeside, Respelled};
pub use release::{Cells, Release, ReleasedColumn, ReleasedTable};
pub use requirement::{Distance, Requirement};
pub use role::Role;
pub use schema::{Schema, SchemaError, SchemaErrorKind, SchemaErrors, SchemaParent, SchemaReference, SchemaTable};
pub use spec::Spec;
pub use table::{Column, NULL, Table, Texts};
pub use transform::{Bound, Codes, PSEUDONYM_ALPHABET, PSEUDONYM_LENGTH, Transform, spelled_as};
pub use value::{Decimal, Notation, Value, ValueType};
pub use view::{ALONE, Block, BlockCells, Consent, Disclosure};
