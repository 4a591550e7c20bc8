//! Random jobs of many tables: snowflakes of up to four levels, in which a row has up to six children in each child
//! table.
//!
//! Tables are drawn as plain numbers, like those of jobs of one table; a row's first number chooses its parent. Some
//! rows have no parent and are to be dropped, some persons have no rows in any child table, and now and then there is a
//! second table of persons. A parent may come after its children in the spec.

use std::fmt;
use std::path::PathBuf;

use kohort_core::AnonymizeError;
use kohort_core::relational::{AnonymizedTables, anonymize_tables};
use kohort_model::spec::{
    Algorithm, Childless, ColumnSpec, CsvSpec, Keys, Order, Orphans, Pairing, ParentSpec, TableSpec,
};
use kohort_model::{Column, Requirement, Role, Schema, Silent, Spec, Table};
use proptest::prelude::*;

use super::column::{ColumnDraft, column_draft, sensitive_draft};
use super::requirement::{RequirementDraft, requirement_draft};

/// Tables, and what is required of their release.
#[derive(Clone)]
pub struct TablesJob {
    /// The private tables, in the order of the spec.
    pub tables: Vec<Table>,
    /// How keys connect them.
    pub schema: Schema,
    /// How the release is made.
    pub spec: Spec,
}

/// How large jobs are.
#[derive(Clone, Copy, Debug)]
pub struct TablesSize {
    /// The largest number of persons in the first table of persons.
    pub persons: usize,
    /// The largest number of tables.
    pub tables: usize,
    /// The largest number of rows of a child table.
    pub rows: usize,
    /// The largest number of distinct values of a quasi column.
    pub values: u16,
}

impl TablesSize {
    /// A handful of persons.
    pub const TINY: TablesSize = TablesSize { persons: 6, tables: 3, rows: 12, values: 3 };
    /// A few dozen persons.
    pub const SMALL: TablesSize = TablesSize { persons: 24, tables: 5, rows: 60, values: 8 };
    /// A hundred persons.
    pub const MEDIUM: TablesSize = TablesSize { persons: 100, tables: 4, rows: 250, values: 12 };
}

/// What jobs require beyond k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Nothing beyond k.
    K,
    /// Persons' own k, and requirements on sensitive columns.
    More,
}

/// The largest number of levels below a person.
const N_LEVELS: usize = 4;
/// The largest number of children of a row in one child table.
const MOST_CHILDREN: usize = 6;
/// How many random numbers are drawn for each row.
const N_DRAWS: usize = 8;
const PARENT_DRAW: usize = N_DRAWS - 1;
const PLAIN_DRAW: usize = N_DRAWS - 2;
const SENSITIVE_DRAW: usize = N_DRAWS - 3;
const OWN_K_DRAW: usize = N_DRAWS - 4;
const MOST_QUASI: usize = 3;

/// One table before its columns exist.
#[derive(Clone, Debug)]
struct TableDraft {
    /// Which of the earlier tables is its parent, if any.
    parent: u16,
    quasi: Vec<ColumnDraft>,
    sensitive: Option<(ColumnDraft, Option<RequirementDraft>)>,
    plain: bool,
    rows: Vec<[u16; N_DRAWS]>,
}

/// Random jobs.
pub fn tables_job(size: TablesSize, asks: Asks) -> impl Strategy<Value = TablesJob> {
    let person_table = table_draft(size, size.persons);
    let child_tables = prop::collection::vec(table_draft(size, size.rows), 1..size.tables);
    let own_k = prop_oneof![4 => Just(None), 1 => (1u16..4).prop_map(Some)];
    (person_table, child_tables, own_k, any::<u16>(), spec(size.persons)).prop_map(
        move |(persons, children, own_k, turn, spec)| {
            let own_k = own_k.filter(|_| asks == Asks::More);
            assemble(&persons, &children, own_k, turn, spec, asks)
        },
    )
}

fn table_draft(size: TablesSize, rows: usize) -> impl Strategy<Value = TableDraft> {
    let sensitive = prop::option::of((sensitive_draft(), prop::option::weighted(0.5, requirement_draft())));
    (
        any::<u16>(),
        prop::collection::vec(column_draft(size.values), 0..=MOST_QUASI),
        sensitive,
        any::<bool>(),
        prop::collection::vec(prop::array::uniform8(any::<u16>()), 1..=rows),
    )
        .prop_map(|(parent, quasi, sensitive, plain, rows)| TableDraft { parent, quasi, sensitive, plain, rows })
}

fn spec(persons: usize) -> impl Strategy<Value = Spec> {
    let k = prop_oneof![1 => Just(1u32), 6 => 2u32..=(persons as u32 / 4).max(2)];
    let max_suppressed = prop_oneof![2 => Just(0.0), 1 => Just(1.0), 1 => 0.0f64..0.6];
    let algorithm = prop_oneof![Just(Algorithm::Auto), Just(Algorithm::Miracle), Just(Algorithm::MiracleX)];
    let pairing = prop_oneof![Just(None), Just(Some(Pairing::Greedy)), Just(Some(Pairing::Optimal))];
    let threshold = prop::option::of(0.0f64..1.0);
    let cluster_limit = prop::option::of(1u32..20);
    let order = prop_oneof![3 => Just(Order::Sorted), 1 => Just(Order::Input)];
    let keys = prop_oneof![3 => Just(Keys::Surrogate), 1 => Just(Keys::Keep)];
    (k, max_suppressed, algorithm, pairing, threshold, cluster_limit, order, keys).prop_map(
        |(k, max_suppressed, algorithm, pairing, threshold, cluster_limit, order, keys)| {
            let mut spec = Spec::new(k);
            (spec.max_suppressed, spec.algorithm, spec.order, spec.keys) = (max_suppressed, algorithm, order, keys);
            spec.clustering.pairing = pairing;
            spec.clustering.threshold = threshold;
            spec.clustering.cluster_limit = cluster_limit;
            spec
        },
    )
}

/// A table with its rows, and how many levels below the persons it is.
struct Grown {
    table: Table,
    spec: TableSpec,
    level: usize,
}

fn assemble(
    persons: &TableDraft,
    children: &[TableDraft],
    own_k: Option<u16>,
    turn: u16,
    mut spec: Spec,
    asks: Asks,
) -> TablesJob {
    let mut grown = vec![grow("t0".to_owned(), persons, None, own_k, asks)];
    for (position, draft) in (1..).zip(children) {
        let may_bear: Vec<usize> = (0..grown.len()).filter(|&other| grown[other].level + 1 < N_LEVELS).collect();
        // One in this many tables is a table of persons too, with children apart from the rest.
        let parent =
            if draft.parent % 11 == 10 { None } else { Some(may_bear[draft.parent as usize % may_bear.len()]) };
        let name = format!("t{position}");
        let table = grow(name, draft, parent.map(|parent| &grown[parent]), None, asks);
        grown.push(table);
    }
    let n_tables = grown.len();
    grown.rotate_left(turn as usize % n_tables);
    let has_children =
        |name: &str| grown.iter().any(|other| other.spec.parent.as_ref().is_some_and(|parent| parent.table == name));
    let childless: Vec<Childless> = grown
        .iter()
        .map(|table| match table.level {
            0 if has_children(&table.spec.name) => Childless::Keep,
            _ => Childless::Refuse,
        })
        .collect();
    let mut tables = Vec::new();
    for (mut grown, childless) in grown.into_iter().zip(childless) {
        grown.spec.childless = childless;
        tables.push(grown.table);
        spec.tables.push(grown.spec);
    }
    let schema =
        Schema::of(&spec, &tables).expect("keys are numbers, orphans are dropped and persons may be childless");
    TablesJob { tables, schema, spec }
}

fn grow(name: String, draft: &TableDraft, parent: Option<&Grown>, own_k: Option<u16>, asks: Asks) -> Grown {
    let n_parents = parent.map_or(0, |parent| parent.table.n_rows);
    let mut n_children = vec![0; n_parents];
    let mut rows: Vec<(Option<usize>, &[u16; N_DRAWS])> = Vec::new();
    for draws in &draft.rows {
        let draw = draws[PARENT_DRAW] as usize;
        let is_orphan = parent.is_some() && (draw % 41 == 40 || n_parents == 0);
        let of = (parent.is_some() && !is_orphan).then(|| draw % n_parents);
        if of.is_none_or(|of| n_children[of] < MOST_CHILDREN) {
            of.into_iter().for_each(|of| n_children[of] += 1);
            rows.push((of, draws));
        }
    }
    let text_column = |name: &str, role: Role, cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..rows.len()).map(cell).collect();
        Column::from_cells(name, role, cells.iter().map(|cell| Some(cell.as_str())))
    };
    let key = format!("{name}_id");
    let mut columns = vec![text_column(&key, Role::Key, &|row| format!("{name}-{row}"))];
    let mut asked: Vec<(String, Vec<Requirement>)> = Vec::new();
    let foreign_key = parent.map(|parent| format!("of_{}", parent.spec.name));
    if let (Some(parent), Some(foreign_key)) = (parent, &foreign_key) {
        let of = |row: usize| rows[row].0.map_or("nobody".to_owned(), |of| format!("{}-{of}", parent.spec.name));
        columns.push(text_column(foreign_key, Role::Key, &of));
    }
    for (position, quasi) in draft.quasi.iter().enumerate() {
        let draws = rows.iter().map(|(_, draws)| draws[position]);
        columns.push(quasi.column(&format!("q{position}"), Role::Quasi, draws));
    }
    if let Some(most) = own_k {
        columns.push(text_column("own_k", Role::PersonK, &|row| (rows[row].1[OWN_K_DRAW] % (most + 1)).to_string()));
    }
    if let Some((sensitive, requirement)) = &draft.sensitive {
        let column = sensitive.column("s", Role::Sensitive, rows.iter().map(|(_, draws)| draws[SENSITIVE_DRAW]));
        let requirement = requirement.filter(|_| asks == Asks::More).map(|requirement| requirement.on(&column));
        asked.push(("s".to_owned(), requirement.into_iter().collect()));
        columns.push(column);
    }
    // A table of persons without children must have something to show.
    let shows_nothing = parent.is_none() && draft.quasi.is_empty() && draft.sensitive.is_none();
    if draft.plain || shows_nothing {
        columns.push(text_column("plain", Role::Plain, &|row| format!("w{}", rows[row].1[PLAIN_DRAW] % 3)));
    }
    let column_spec = |column: &Column| ColumnSpec {
        name: column.name.clone(),
        role: column.role,
        references: None,
        value_type: None,
        hierarchy: None,
        transform: kohort_model::Transform::default(),
        sensitive_to: Vec::new(),
        weight: 1.0,
        requirements: asked
            .iter()
            .find(|(name, _)| *name == column.name)
            .map_or(Vec::new(), |(_, asked)| asked.clone()),
    };
    let spec = TableSpec {
        file: PathBuf::from(format!("{name}.csv")),
        csv: CsvSpec::default(),
        person: parent.is_none().then(|| key.clone()),
        key: Some(key),
        parent: parent
            .zip(foreign_key)
            .map(|(parent, foreign_key)| ParentSpec { table: parent.spec.name.clone(), foreign_key }),
        orphans: if parent.is_some() { Orphans::Drop } else { Orphans::Refuse },
        childless: Childless::Refuse,
        // A limit that the release often reaches. Not drawn, so that all other cases stay the same.
        max_rows_left_out: (parent.is_some() && rows.len() % 4 == 3).then_some(0.3),
        columns: columns.iter().map(column_spec).collect(),
        name: name.clone(),
    };
    let person = parent.is_none().then_some(0);
    let level = parent.map_or(0, |parent| parent.level + 1);
    Grown { table: Table { name, n_rows: rows.len(), columns, person }, spec, level }
}

impl TablesJob {
    /// What every class of each table must satisfy.
    pub fn requirements(&self) -> Vec<Vec<Requirement>> {
        self.spec.tables.iter().map(|table| self.spec.requirements(table)).collect()
    }

    /// The release, or why there is none.
    ///
    /// # Errors
    /// The errors of [`anonymize_tables`].
    pub fn run(&self) -> Result<AnonymizedTables, AnonymizeError> {
        anonymize_tables(&self.tables, &self.schema, &self.spec, &Silent)
    }

    /// The same job with the rows of each table in another order, as if the files had been written so.
    ///
    /// # Panics
    /// If the orders are not those of the tables' rows.
    #[must_use]
    pub fn with_rows(&self, orders: &[Vec<usize>]) -> TablesJob {
        let mut job = self.clone();
        for (table, order) in job.tables.iter_mut().zip(orders) {
            for column in &mut table.columns {
                let cells = Column::from_cells(&column.name, column.role, order.iter().map(|&row| column.cell(row)));
                (column.texts, column.ids) = (cells.texts, cells.ids);
            }
        }
        job.schema = Schema::of(&job.spec, &job.tables).expect("the order of rows breaks no key");
        job
    }

    /// The same job with its tables in another order, as if the spec had been written so.
    ///
    /// # Panics
    /// If this is no order of the tables.
    #[must_use]
    pub fn with_tables(&self, order: &[usize]) -> TablesJob {
        let mut spec = self.spec.clone();
        spec.tables = order.iter().map(|&table| self.spec.tables[table].clone()).collect();
        let tables: Vec<Table> = order.iter().map(|&table| self.tables[table].clone()).collect();
        let schema = Schema::of(&spec, &tables).expect("the order of tables breaks no link");
        TablesJob { tables, schema, spec }
    }
}

/// Shows every cell: generated tables hold nobody's data.
impl fmt::Debug for TablesJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spec { k, algorithm, max_suppressed, order, keys, clustering, .. } = &self.spec;
        writeln!(f, "k = {k}, {algorithm:?}, {max_suppressed} suppressed, {order:?}, {keys:?}, {clustering:?}")?;
        for (table, spec) in self.tables.iter().zip(&self.spec.tables) {
            writeln!(f, "[{}] {:?}", table.name, spec.parent)?;
            for column in &spec.columns {
                let value_type = table.column(&column.name).map(|column| column.value_type.to_string());
                writeln!(f, "  {} is {} {value_type:?} {:?}", column.name, column.role, column.requirements)?;
            }
            for column in table.columns.iter().filter(|column| column.hierarchy.is_some()) {
                let hierarchy = column.hierarchy.as_ref().expect("it was asked for");
                for leaf in hierarchy.leaves() {
                    let path: Vec<&str> = hierarchy.path(leaf).map(|node| hierarchy.label(node)).collect();
                    writeln!(f, "    {}: {}", column.name, path.join(";"))?;
                }
            }
            for row in 0..table.n_rows {
                let cells: Vec<&str> = table.columns.iter().map(|column| column.cell(row).unwrap_or("NULL")).collect();
                writeln!(f, "  {}", cells.join(","))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::NULL;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    #[test]
    fn jobs_are_of_every_shape() {
        let mut runner = TestRunner::deterministic();
        let strategy = tables_job(TablesSize::SMALL, Asks::More);
        let (mut deepest, mut most_children, mut most_roots) = (0, 0, 0);
        let (mut orphans, mut childless, mut nulls, mut own_k, mut asks) = (false, false, false, false, false);
        for _ in 0..300 {
            let job = strategy.new_tree(&mut runner).unwrap().current();
            most_roots = most_roots.max(job.schema.roots().len());
            for table in 0..job.tables.len() {
                let mut level = 1;
                let mut at = table;
                while let Some(parent) = job.schema.tables[at].parent {
                    (at, level) = (parent.table, level + 1);
                }
                deepest = deepest.max(level);
                let columns = &job.tables[table].columns;
                nulls |= columns.iter().any(|column| column.role == Role::Quasi && column.has_nulls());
                own_k |= columns.iter().any(|column| column.role == Role::PersonK);
                asks |= job.requirements()[table].len() > 1;
                if let Some(parents) = job.schema.parent_rows(&job.tables, table) {
                    orphans |= parents.contains(&NULL);
                    let n_parents = job.tables[job.schema.tables[table].parent.unwrap().table].n_rows;
                    let mut n_children = vec![0; n_parents];
                    parents.iter().filter(|&&row| row != NULL).for_each(|&row| n_children[row as usize] += 1);
                    most_children = n_children.iter().copied().fold(most_children, usize::max);
                    childless |= n_children.contains(&0);
                }
            }
        }
        assert_eq!((deepest, most_children), (N_LEVELS, MOST_CHILDREN));
        assert!(most_roots > 1 && orphans && childless && nulls && own_k && asks);
    }
}
