//! Random jobs: a table, what every class of its release must satisfy, and how the release is made.
//!
//! Tables are drawn as plain numbers that each column turns into cells of its own kind, so that a failing job shrinks
//! by losing rows and columns. Most requirements can be reached, but not all. `Debug` of a [`Job`]
//! shows every cell: generated tables hold nobody's data.

pub mod audiences;
pub mod block;
mod column;
pub mod history;
pub mod references;
pub mod register;
mod requirement;
pub mod snowflake;
mod spec;
mod texts;
pub mod town;

use std::fmt;

use kohort_core::{AnonymizeError, Anonymized, anonymize};
use kohort_model::{Column, Requirement, Role, Silent, Spec, Table};
use proptest::prelude::*;
use proptest::test_runner::Config;

use column::{ColumnDraft, column_draft, sensitive_draft};
use requirement::{RequirementDraft, requirement_draft};
use spec::spec;

/// A table with what is asked of its release.
#[derive(Clone)]
pub struct Job {
    /// The private table.
    pub table: Table,
    /// How the release is made.
    pub spec: Spec,
    /// What every class must satisfy.
    pub requirements: Vec<Requirement>,
}

/// How large jobs are.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The largest number of rows.
    pub rows: usize,
    /// The largest number of quasi columns.
    pub quasi: usize,
    /// The largest number of distinct values of a quasi column.
    pub values: u16,
}

impl Size {
    /// Small enough to try every partition.
    pub const TINY: Size = Size { rows: 7, quasi: 2, values: 5 };
    /// A few dozen rows.
    pub const SMALL: Size = Size { rows: 60, quasi: 4, values: 12 };
    /// More than a hundred rows.
    pub const MEDIUM: Size = Size { rows: 150, quasi: 5, values: 25 };
    /// A few hundred rows.
    pub const LARGE: Size = Size { rows: 400, quasi: 5, values: 60 };
}

/// How properties are tested: on `PROPTEST_CASES` / 256 times this many random jobs, and on this many without the variable.
pub fn config(cases: u32) -> Config {
    let default = Config::default();
    let cases = (cases * default.cases).div_ceil(256);
    Config { cases, failure_persistence: None, max_shrink_iters: 4096, ..default }
}

/// How many random numbers are drawn for each row.
const N_DRAWS: usize = 16;
const PERSON_DRAW: usize = N_DRAWS - 1;
const OWN_K_DRAW: usize = N_DRAWS - 2;
const PLAIN_DRAW: usize = N_DRAWS - 4;
const FIRST_SENSITIVE_DRAW: usize = 8;

/// Whether each row is a person, or persons have several rows.
#[derive(Clone, Copy, Debug)]
enum Persons {
    EachRow,
    /// About this many rows per person; the first column names the person.
    Shared {
        rows_each: u16,
    },
}

/// Whether persons have their own k, and how large it is.
#[derive(Clone, Copy, Debug)]
enum OwnK {
    None,
    UpTo(u16),
}

/// Columns that are neither quasi nor sensitive.
#[derive(Clone, Copy, Debug)]
struct Others {
    plain: bool,
    identifier: bool,
}

/// Random jobs of every kind.
pub fn job(size: Size) -> impl Strategy<Value = Job> {
    let persons = prop_oneof![
        3 => Just(Persons::EachRow),
        2 => (1u16..5).prop_map(|rows_each| Persons::Shared { rows_each })
    ];
    job_of(size, persons)
}

/// Random jobs whose persons have several rows.
pub fn job_of_several_rows(size: Size) -> impl Strategy<Value = Job> {
    job_of(size, (1u16..5).prop_map(|rows_each| Persons::Shared { rows_each }))
}

fn job_of(size: Size, persons: impl Strategy<Value = Persons>) -> impl Strategy<Value = Job> {
    let own_k = prop_oneof![3 => Just(OwnK::None), 1 => (1u16..9).prop_map(OwnK::UpTo)];
    let others = any::<(bool, bool)>().prop_map(|(plain, identifier)| Others { plain, identifier });
    let sensitive = prop::collection::vec((sensitive_draft(), prop::collection::vec(requirement_draft(), 0..3)), 0..3);
    (
        prop::collection::vec(column_draft(size.values), 1..=size.quasi),
        sensitive,
        prop::collection::vec(prop::array::uniform16(any::<u16>()), 1..=size.rows),
        (persons, own_k, others),
        spec(),
    )
        .prop_map(|(quasi, sensitive, rows, (persons, own_k, others), spec)| {
            assemble(&quasi, &sensitive, &rows, persons, own_k, others, spec)
        })
}

/// Random jobs that ask for nothing but k, each row a person.
pub fn plain_job(size: Size) -> impl Strategy<Value = Job> {
    let rows = prop::collection::vec(prop::array::uniform16(any::<u16>()), 1..=size.rows);
    (prop::collection::vec(column_draft(size.values), 1..=size.quasi), rows, spec()).prop_map(|(quasi, rows, spec)| {
        let others = Others { plain: true, identifier: false };
        assemble(&quasi, &[], &rows, Persons::EachRow, OwnK::None, others, spec)
    })
}

fn assemble(
    quasi: &[ColumnDraft],
    sensitive: &[(ColumnDraft, Vec<RequirementDraft>)],
    rows: &[[u16; N_DRAWS]],
    persons: Persons,
    own_k: OwnK,
    others: Others,
    mut spec: Spec,
) -> Job {
    let mut columns: Vec<Column> = Vec::new();
    let mut requirements = vec![Requirement::K(spec.k)];
    let text_column = |name: &str, role: Role, cell: &dyn Fn(usize, &[u16; N_DRAWS]) -> String| {
        let cells: Vec<String> = rows.iter().enumerate().map(|(row, draws)| cell(row, draws)).collect();
        Column::from_cells(name, role, cells.iter().map(|cell| Some(cell.as_str())))
    };
    let person_of = |row: usize, draws: &[u16; N_DRAWS]| match persons {
        Persons::EachRow => row,
        Persons::Shared { rows_each } => draws[PERSON_DRAW] as usize % (rows.len() / rows_each as usize).max(1),
    };
    if others.identifier {
        columns.push(text_column("name", Role::Identifier, &|row, draws| format!("P{}", person_of(row, draws))));
    }
    let person = match persons {
        Persons::EachRow => None,
        Persons::Shared { .. } => {
            columns.push(text_column("person", Role::Key, &|row, draws| format!("p{}", person_of(row, draws))));
            Some(columns.len() - 1)
        }
    };
    spec.datafly.block = spec.datafly.block.filter(|_| person.is_some());
    for (position, draft) in quasi.iter().enumerate() {
        columns.push(draft.column(&format!("q{position}"), Role::Quasi, rows.iter().map(|row| row[position])));
    }
    if let OwnK::UpTo(largest) = own_k {
        // All rows of a person have the same own k, so it is drawn per person.
        let wish = |row: usize, draws: &[u16; N_DRAWS]| match persons {
            Persons::EachRow => draws[OWN_K_DRAW] % (largest + 1),
            Persons::Shared { .. } => (person_of(row, draws) as u16).wrapping_mul(7919) % (largest + 1),
        };
        columns.push(text_column("own_k", Role::PersonK, &|row, draws| wish(row, draws).to_string()));
        requirements.push(Requirement::PersonK { column: "own_k".to_owned() });
    }
    if others.plain {
        columns.push(text_column("plain", Role::Plain, &|_, draws| format!("w{}", draws[PLAIN_DRAW] % 5)));
    }
    for (position, (draft, asked)) in sensitive.iter().enumerate() {
        let name = format!("s{position}");
        let draws = rows.iter().map(|row| row[FIRST_SENSITIVE_DRAW + position]);
        let column = draft.column(&name, Role::Sensitive, draws);
        requirements.extend(asked.iter().map(|asked| asked.on(&column)));
        columns.push(column);
    }
    let table = Table { name: "random".to_owned(), columns, n_rows: rows.len(), person };
    Job { table, spec, requirements }
}

impl Job {
    /// The release, or why there is none.
    ///
    /// # Errors
    /// The errors of [`anonymize`].
    pub fn run(&self) -> Result<Anonymized, AnonymizeError> {
        anonymize(&self.table, &self.spec, &self.requirements, &Silent)
    }

    /// The same job with its rows in another order, as if the file had been written so.
    #[must_use]
    pub fn with_rows(&self, order: &[usize]) -> Job {
        let mut job = self.clone();
        job.table.n_rows = order.len();
        for column in &mut job.table.columns {
            let cells = Column::from_cells(&column.name, column.role, order.iter().map(|&row| column.cell(row)));
            (column.texts, column.ids) = (cells.texts, cells.ids);
        }
        job
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spec { k, algorithm, max_suppressed, leftovers, order, keys, .. } = &self.spec;
        let Spec { mondrian, datafly, full_domain, .. } = &self.spec;
        writeln!(f, "k = {k}, {algorithm:?}, {max_suppressed} suppressed, {leftovers:?}, {order:?}, {keys:?}")?;
        writeln!(f, "{mondrian:?}, {datafly:?}, {full_domain:?}")?;
        for requirement in &self.requirements {
            writeln!(f, "{requirement:?}")?;
        }
        for column in &self.table.columns {
            writeln!(f, "{} is {} {}", column.name, column.role, column.value_type)?;
            for leaf in column.hierarchy.iter().flat_map(|hierarchy| hierarchy.leaves()) {
                let hierarchy = column.hierarchy.as_ref().expect("leaves come from it");
                let path: Vec<&str> = hierarchy.path(leaf).map(|node| hierarchy.label(node)).collect();
                writeln!(f, "    {}", path.join(";"))?;
            }
        }
        for row in 0..self.table.n_rows {
            let cells: Vec<&str> = self.table.columns.iter().map(|column| column.cell(row).unwrap_or("NULL")).collect();
            writeln!(f, "{}", cells.join(","))?;
        }
        Ok(())
    }
}
