//! [`Private`]: the private tables that a release is made from, and the spec that says what is asked of them.
//!
//! All kinds of releases (of one table, of several, with registers) are written, printed and handed out as batches by the
//! same code. The kinds differ only here: in which private tables there are, and in how the verifier counts the written
//! rows.

use kohort_model::{Audiences, JoinedRegister, PreviousRelease, Release, ReleasedTable, Requirement, Spec, Table};
use kohort_verify::{
    Asked, AskedOfJoin, Findings, SuppressionLimit, ToldApart, Verified, Violation, Violations, verify_joined_written,
    verify_tables_written, verify_written,
};

use crate::read::Original;
use crate::write::FileForms;
use crate::{ColumnManifests, LoadedTable, LoadedTables};

/// The private tables of a spec.
#[derive(Debug)]
pub struct Private {
    /// The spec.
    pub spec: Spec,
    /// The tables.
    pub tables: PrivateTables,
}

/// Private tables, by the kind of release that is made from them.
#[derive(Debug)]
pub enum PrivateTables {
    /// One table that refers to no other.
    One(Box<LoadedTable>),
    /// Several tables that refer to each other.
    Many(LoadedTables),
    /// One table, released with registers.
    Joined {
        /// The table.
        table: Box<LoadedTable>,
        /// The rows of the table and of the registers.
        register: JoinedRegister,
        /// Earlier releases that readers of the new one may have.
        previous: Vec<PreviousRelease>,
    },
}

/// What a spec asks of one table.
#[derive(Clone, Debug, PartialEq)]
pub enum AskedOfOne {
    /// The same requirements for all readers.
    OfAll(Vec<Requirement>),
    /// Requirements of its own for each audience.
    OfAudiences(Audiences),
}

impl AskedOfOne {
    /// What a spec asks of its first table.
    pub fn new(spec: &Spec) -> Self {
        let Some(table) = spec.tables.first() else { return AskedOfOne::OfAll(vec![Requirement::K(spec.k)]) };
        match spec.audiences_of(table) {
            Some(audiences) => AskedOfOne::OfAudiences(audiences),
            None => AskedOfOne::OfAll(spec.requirements(table)),
        }
    }

    /// All requirements, of all audiences.
    pub fn requirements(&self) -> Vec<Requirement> {
        match self {
            AskedOfOne::OfAll(requirements) => requirements.clone(),
            AskedOfOne::OfAudiences(audiences) => {
                audiences.each.iter().flat_map(|audience| audience.requirements.iter().cloned()).collect()
            }
        }
    }
}

impl<'a> From<&'a AskedOfOne> for Asked<'a> {
    fn from(asked: &'a AskedOfOne) -> Self {
        match asked {
            AskedOfOne::OfAll(requirements) => Asked::OfAll(requirements),
            AskedOfOne::OfAudiences(audiences) => Asked::OfAudiences(audiences),
        }
    }
}

/// What a spec asks of a release with registers.
pub fn asked_of_join<'a>(
    spec: &Spec,
    requirements: &'a [Requirement],
    previous: &'a [PreviousRelease],
) -> AskedOfJoin<'a> {
    let by_key = spec.registers.values().any(|register| register.key.is_some());
    AskedOfJoin {
        requirements,
        delta_presence: spec.delta_presence,
        rows: spec.register.release,
        told_apart: if by_key { ToldApart::ByKey } else { ToldApart::ByValues(spec.unmatched()) },
        previous,
        limit: SuppressionLimit::share(spec.max_suppressed),
    }
}

impl Private {
    /// One table that refers to no other.
    pub fn one(spec: Spec, table: LoadedTable) -> Self {
        Private { spec, tables: PrivateTables::One(Box::new(table)) }
    }

    /// The requirements of each table.
    pub fn requirements(&self) -> Vec<Vec<Requirement>> {
        self.spec.tables.iter().map(|table| self.spec.requirements(table)).collect()
    }

    /// The tables as they were read.
    pub fn tables(&self) -> Vec<&Table> {
        match &self.tables {
            PrivateTables::One(table) | PrivateTables::Joined { table, .. } => vec![&table.table],
            PrivateTables::Many(tables) => tables.tables.iter().collect(),
        }
    }

    /// The entries of the manifest for the columns of each released file. The files of hierarchies are not known yet.
    pub fn column_manifests(&self, released: &[ReleasedTable]) -> Vec<ColumnManifests> {
        self.with_originals(|originals| {
            originals.iter().zip(released).map(|(original, table)| original.column_manifests(table)).collect()
        })
    }

    /// Calls `use_them` with one private table for each released table: the one whose columns and types the file follows.
    pub(crate) fn with_originals<T>(&self, use_them: impl FnOnce(&[Original<'_>]) -> T) -> T {
        match &self.tables {
            PrivateTables::One(table) => use_them(&[table.original()]),
            PrivateTables::Many(tables) => use_them(&tables.originals().collect::<Vec<_>>()),
            PrivateTables::Joined { table, register, .. } => use_them(&FileForms::new(table, register).originals()),
        }
    }

    /// For each released table, the private table with all values that its labels stand for.
    pub(crate) fn valued(&self) -> Vec<&Table> {
        match &self.tables {
            PrivateTables::Joined { table, register, .. } => vec![&register.rows, &table.table],
            PrivateTables::One(_) | PrivateTables::Many(_) => self.tables(),
        }
    }

    /// Verifies the tables of a release as they were read back.
    pub(crate) fn verify_written(
        &self,
        written: &[Table],
        release: &Verified<Release>,
    ) -> Result<Findings, Violations> {
        match (&self.tables, written) {
            (PrivateTables::One(table), [written]) => {
                verify_written(written, release, &table.table, &AskedOfOne::new(&self.spec))
            }
            (PrivateTables::One(_), written) => Err(Violation::NotOneTable { n: written.len() as u64 }.into()),
            (PrivateTables::Many(LoadedTables { tables, schema, .. }), written) => {
                verify_tables_written(written, release, tables, schema, &self.requirements())
            }
            (PrivateTables::Joined { table, register, previous }, written) => {
                let requirements = self.spec.requirements(&self.spec.tables[0]);
                let asked = asked_of_join(&self.spec, &requirements, previous);
                verify_joined_written(written, release, &table.table, register, asked)
            }
        }
    }
}
