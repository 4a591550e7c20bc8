//! [`PartsAgainst`]: whether released rows can have come from a private table, where neither is ever in memory as a whole.
//!
//! # Guarantee
//! Finds what [`crate::verify_against`] finds, for tables in which each row is a person and requirements on classes of all quasi
//! columns.
//! # Method
//! Classes are counted in parts that have whole classes. Origins are searched for in other parts: rows are parted where no
//! released row can come from a private row on the other side (`places`). So origins can be given in the whole exactly if they
//! can be given in each part.

use kohort_model::{Column, Requirement, Role, Table};

use super::PartsCounter;
use super::places::{OriginCut, Places, ValueCounts, best_cut};
use crate::asked::Perspectives;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::loss::{CountedColumn, LossSums, PersonSums};
use crate::count::roll::{Sensitive, own_ks};
use crate::reading::coverage::Runs;
use crate::single::against::{MAX_CANDIDATES, Origins, Pairs, Sides, lacking, miscounted};
use crate::single::recoding::KeyColumns;
use crate::structure::{check_table, other_name};
use crate::{Asked, Counted, Findings, Suppressed, SuppressionLimit, Violation, Violations};

/// What a possible origin takes in memory while origins are given.
const BYTES_PER_CANDIDATE: u64 = 32;

/// A table whose rows come piece by piece.
#[derive(Clone, Copy, Debug)]
pub struct CountedRows<'a> {
    /// Its columns, with rows in which every distinct text occurs, and a null where the table has one.
    pub table: &'a Table,
    /// For each column the number of rows that hold each text, by its id, and then of nulls.
    pub counts: &'a [Vec<u64>],
    /// The number of rows.
    pub n_rows: u64,
}

/// Verifies a released table against a private one, part by part.
pub struct PartsAgainst<'a> {
    released: CountedRows<'a>,
    original: CountedRows<'a>,
    suppressed: Suppressed,
    limit: SuppressionLimit,
    perspectives: Perspectives,
    /// Requirements on own k that are counted in origins, because own k is never released.
    own_k: Vec<Requirement>,
    /// Released and private positions of the columns that are compared: generalized ones, then unchanged ones.
    compared: Vec<(usize, usize)>,
    n_quasi: usize,
    /// Positions of the columns that persons' own k is in.
    private_k: Vec<usize>,
    runs: Vec<Runs>,
    places: Vec<Places>,
    /// The compared columns as they were released, with the meaning of the private ones.
    shown: Table,
    counter: PartsCounter,
    /// For each column of `shown`, the number of nulls and then of rows that hold each text.
    counts_of_shown: Vec<Vec<u64>>,
    persons: Vec<PersonSums>,
    /// The sum of the k that persons need.
    needed: u64,
    n_lacking: u64,
    first_lacking: u64,
}

impl<'a> PartsAgainst<'a> {
    /// Pairs the columns of both tables. `suppressed` is what the release states to have left out.
    ///
    /// # Errors
    /// If the columns are not those of a release of the private table, or the requirements don't fit them.
    pub fn new(
        released: CountedRows<'a>,
        original: CountedRows<'a>,
        asked: &[Requirement],
        suppressed: Suppressed,
        limit: SuppressionLimit,
    ) -> Result<Self, Violations> {
        let (public, private) = (released.table, original.table);
        let mut violations = check_table(public);
        violations.extend(check_table(private));
        violations.extend(other_name(&public.name, &private.name));
        if released.n_rows == 0 {
            violations.push(Violation::NoRows { table: public.name.clone() });
        }
        let keys = KeyColumns { never: private.person, ..KeyColumns::default() };
        let pairs = Pairs::new(public, private, &keys, &mut violations);
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let names: Vec<&str> = pairs.quasi.iter().map(|(public, _)| public.name.as_str()).collect();
        let perspectives = Perspectives::new(Asked::OfAll(asked), &names, &mut violations);
        Sensitive::measured(&pairs.copied, None, asked, &mut violations);
        let private_k = own_ks(private, None, None, asked, &mut violations);
        let private_k = private_k.iter().filter_map(|own_k| private.position(&own_k.column)).collect();
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let runs = pairs.runs();
        let of_quasi = pairs.quasi.iter().zip(&runs);
        let mut places: Vec<Places> =
            of_quasi.map(|((public, private), runs)| Places::of_labels(runs, public, private)).collect();
        places.extend(pairs.copied.iter().map(|(public, private)| Places::of_values(public, private)));
        let both = || pairs.quasi.iter().chain(&pairs.copied);
        let position = |table: &Table, column: &Column| table.position(&column.name).unwrap_or_default();
        let compared: Vec<(usize, usize)> = both().map(|(a, b)| (position(public, a), position(private, b))).collect();
        // The released cells, in columns that have the meaning of the private ones.
        let columns = both().map(|(public, private)| Column { texts: public.texts.clone(), ..private.without_cells() });
        let shown = Table { name: public.name.clone(), columns: columns.collect(), n_rows: 0, person: None };
        let n_quasi = pairs.quasi.len();
        let (own_k, by_rows): (Vec<Requirement>, Vec<Requirement>) =
            asked.iter().cloned().partition(|requirement| requirement.own_k_column().is_some());
        let quasi: Vec<usize> = (0..n_quasi).collect();
        let counter = PartsCounter::of_table(&shown, &quasi, &shown.with_role(Role::Sensitive), &by_rows)?;
        let nulls_first = |&(position, _): &(usize, usize)| {
            let mut counts = released.counts[position].clone();
            counts.rotate_right(1);
            counts
        };
        Ok(PartsAgainst {
            counts_of_shown: compared.iter().map(nulls_first).collect(),
            released,
            original,
            suppressed,
            limit,
            perspectives,
            own_k,
            compared,
            n_quasi,
            private_k,
            runs,
            places,
            shown,
            counter,
            persons: Vec::new(),
            needed: 0,
            n_lacking: 0,
            first_lacking: u64::MAX,
        })
    }

    /// Positions in the released table of the columns that are compared. Those of the generalized columns come first.
    pub fn released_columns(&self) -> Vec<usize> {
        self.compared.iter().map(|&(released, _)| released).collect()
    }

    /// Positions in the private table of the same columns, and then of columns with persons' own k.
    pub fn private_columns(&self) -> Vec<usize> {
        self.compared.iter().map(|&(_, private)| private).chain(self.private_k.iter().copied()).collect()
    }

    /// The number of generalized columns.
    pub fn n_quasi(&self) -> usize {
        self.n_quasi
    }

    /// How many rows of the whole tables hold each value.
    pub fn counts(&self) -> ValueCounts {
        let of = |counts: &[Vec<u64>], position: usize| counts[position].clone();
        ValueCounts {
            released: self.compared.iter().map(|&(released, _)| of(self.released.counts, released)).collect(),
            private: self.compared.iter().map(|&(_, private)| of(self.original.counts, private)).collect(),
        }
    }

    /// Counts of no rows.
    pub fn no_counts(&self) -> ValueCounts {
        ValueCounts::none(&self.places)
    }

    /// How to part these rows into groups that can be traced by themselves, if they can be parted. A group has more than
    /// `most_rows` rows only if it can't be parted in the same column.
    pub fn cut(&self, counts: &ValueCounts, most_rows: u64) -> Option<OriginCut> {
        best_cut(&self.places, counts, most_rows)
    }

    /// The group of each released row, given by the compared columns.
    pub fn groups_of_released(&self, cut: &OriginCut, rows: &[Vec<u32>]) -> Vec<u32> {
        self.places[cut.column()].groups_of_released(cut, &rows[cut.column()])
    }

    /// The group of each private row, given by the compared columns.
    pub fn groups_of_private(&self, cut: &OriginCut, rows: &[Vec<u32>]) -> Vec<u32> {
        self.places[cut.column()].groups_of_private(cut, &rows[cut.column()])
    }

    /// Counts the classes of released rows, given by the compared columns. All rows of each class must be there. `row_numbers` has
    /// the place of each row in the table, ascending from 0. Returns the size of the class of each row.
    ///
    /// # Errors
    /// If the rows can't be counted.
    pub fn count_classes(&mut self, rows: &[Vec<u32>], row_numbers: &[u32]) -> Result<Vec<u32>, Violations> {
        let part = with_rows(&self.shown, rows);
        self.counter.count(&part, row_numbers, &self.counts_of_shown)?;
        let quasi: Vec<CellIds<'_>> = part.columns[..self.n_quasi].iter().map(numbers).collect();
        let classes = Classes::group(&quasi.iter().collect::<Vec<_>>(), part.n_rows);
        let mut sizes = vec![0; part.n_rows];
        for class in 0..classes.len() {
            let rows = classes.rows(class);
            rows.iter().for_each(|&row| sizes[row as usize] = rows.len() as u32);
        }
        let of_classes = (0..classes.len()).map(|class| classes.rows(class).len() as u64);
        self.persons.push(PersonSums::of(of_classes, 0, 0, Some(0)));
        Ok(sizes)
    }

    /// Gives origins to the released rows of a part. `released` has the compared columns, and then the size of the class and the
    /// place in the table of each row; `private` has the columns of [`PartsAgainst::private_columns`]. `most_bytes` is what
    /// possible origins may take in memory.
    ///
    /// # Errors
    /// [`Violation::TooManyOrigins`] if they take more. Then the part can be traced after it was cut.
    pub fn trace(&mut self, released: &[Vec<u32>], private: &[Vec<u32>], most_bytes: u64) -> Result<(), Violations> {
        let (n_compared, n_private) = (self.compared.len(), private.first().map_or(0, Vec::len));
        let (sizes, row_numbers) = (&released[n_compared], &released[n_compared + 1]);
        let n_released = row_numbers.len();
        if n_released == 0 && self.own_k.is_empty() {
            return Ok(());
        }
        let pair = |(column, &(_, source)): (usize, &(usize, usize))| {
            let public = self.shown.columns[column].with_ids(released[column].clone());
            (public, self.original.table.columns[source].with_ids(private[column].clone()))
        };
        let columns: Vec<(Column, Column)> = self.compared.iter().enumerate().map(pair).collect();
        let wishes = self.private_k.iter().zip(&private[n_compared..]);
        let wishes = wishes.map(|(&position, ids)| self.original.table.columns[position].with_ids(ids.clone()));
        let wishes = Table { name: String::new(), columns: wishes.collect(), n_rows: n_private, person: None };
        let mut violations = Vec::new();
        let own_k = own_ks(&wishes, None, None, &self.own_k, &mut violations);
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let (quasi, copied) = columns.split_at(self.n_quasi);
        let pairs = Pairs {
            quasi: quasi.iter().map(|(public, private)| (public, private)).collect(),
            copied: copied.iter().map(|(public, private)| (public, private)).collect(),
            keys: Vec::new(),
        };
        let sides = Sides {
            pairs: &pairs,
            runs: &self.runs,
            n_released,
            n_original: n_private,
            quasi: &quasi.iter().map(|(public, _)| numbers(public)).collect::<Vec<_>>(),
            own_k: &own_k,
            persons: None,
            sizes_for_own_k: sizes,
        };
        let most = (most_bytes / BYTES_PER_CANDIDATE).clamp(1, MAX_CANDIDATES);
        let origins = Origins::new(&sides);
        let lacking = lacking(&origins, most)?;
        for (released, n) in lacking {
            self.n_lacking += u64::from(n);
            let first_row = origins.boxes.rows(released)[0] as usize;
            self.first_lacking = self.first_lacking.min(u64::from(row_numbers[first_row]) + 1);
        }
        self.needed += (0..n_private).map(|row| self.perspectives.needed(&own_k, row)).sum::<u64>();
        Ok(())
    }

    /// What the release holds, if it is truthful and every class satisfies every requirement.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn finish(self) -> Result<Findings, Violations> {
        let (n_released, n_private) = (self.released.n_rows, self.original.n_rows);
        let left_over = n_private.saturating_sub(n_released);
        let admitted = [("rows", self.suppressed.rows), ("persons", self.suppressed.persons)];
        let mut violations = miscounted(left_over, &admitted);
        violations.extend(self.limit.exceeded(left_over, n_private));
        let Some(mut findings) = self.counter.finish() else {
            return Err(Violation::NoRows { table: self.released.table.name.clone() }.into());
        };
        violations.append(&mut findings.unmet);
        if self.n_lacking > 0 {
            violations.push(Violation::WithoutOrigin { n: self.n_lacking, first_row: self.first_lacking });
        }
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        // Anybody may be the one who is left out, so the k that the others need is known only if nobody is left out.
        let needed = match self.own_k.is_empty() {
            true => Some(n_released * self.perspectives.needed(&[], 0)),
            false => (left_over == 0).then_some(self.needed),
        };
        let mut persons = self.persons;
        persons.push(PersonSums::of(std::iter::empty(), left_over, n_private, needed));
        let quasi = self.compared[..self.n_quasi].iter().map(|&(released, private)| {
            let (public, counts) = (&self.released.table.columns[released], &self.released.counts[released]);
            let (column, n_of_text) = (&self.original.table.columns[private], &self.original.counts[private]);
            CountedColumn {
                labels: &public.texts,
                n_of_label: &counts[..public.texts.len()],
                private: column,
                n_of_text: &n_of_text[..column.texts.len()],
            }
        });
        findings.loss =
            Some(LossSums::of_counts(quasi, n_released, n_private).alone(Some(PersonSums::together(&persons))));
        findings.counted = Counted::Persons;
        findings.suppressed = Some(self.suppressed);
        Ok(findings)
    }
}

/// The numbers by which the cells of a column are told apart.
fn numbers(column: &Column) -> CellIds<'_> {
    CellIds::by_id(column.ids.as_slice(), column.texts.len())
}

/// A table with other rows, in its first columns.
fn with_rows(table: &Table, rows: &[Vec<u32>]) -> Table {
    let columns: Vec<Column> =
        table.columns.iter().zip(rows).map(|(column, ids)| column.with_ids(ids.clone())).collect();
    Table { name: table.name.clone(), columns, n_rows: rows.first().map_or(0, Vec::len), person: None }
}
