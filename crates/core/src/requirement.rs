//! [`Rules`]: the requirements of a release, compiled to codes, so that a partitioner can ask "does this class satisfy
//! the rules?" in time that depends on the class alone.
//!
//! Definitions are those of [`kohort_model::Requirement`]. `kohort-verify` implements them a second time.

mod closeness;
mod tally;

pub(crate) use tally::Counts;
pub use tally::Tally;

use kohort_model::{Column, Distance, Hierarchy, NULL, Requirement, Table, ValueType};
use rayon::prelude::*;

use crate::cells::Whole;
use crate::encode::{Tree, WithNull};
use crate::ranks::ranks;
pub(crate) use closeness::Ground;

/// Shares that miss a bound by no more than this count as equal to it. The verifier tolerates more, so it never refuses
/// a class that was accepted here because it adds up in another order.
const TOLERANCE: f64 = 1e-10;

/// The requirements of a release, compiled for the rows that take part in it.
#[derive(Clone, Debug)]
pub struct Rules {
    k: u32,
    /// For each row of the table, the person, if persons have several rows.
    person_of_row: Option<Vec<u32>>,
    own_k: Option<OwnKs>,
    sensitive: Vec<Sensitive>,
}

/// Each person's own k, ranked, so that a class can count how many of its rows ask for each.
#[derive(Clone, Debug)]
struct OwnKs {
    /// Every k that somebody asks for, ascending.
    distinct: Vec<u32>,
    /// For each row of the table, the rank of its person's k.
    ranks: Vec<u32>,
}

/// One sensitive column with everything asked of it.
#[derive(Clone, Debug)]
pub(crate) struct Sensitive {
    column: String,
    /// Per row of the table.
    codes: Vec<u32>,
    /// For each code, its share in the release.
    pub(crate) shares: Vec<f64>,
    bounds: Vec<Bound>,
    /// Whether some bound compares a class with the whole release.
    compares_shares: bool,
}

/// The rows over which the shares of sensitive values are measured.
#[derive(Clone, Copy)]
enum Measured<'a> {
    /// These rows of the table.
    Rows(&'a [u32]),
    /// All rows of the table that this one is a part of.
    Whole(&'a Whole<'a>),
}

/// One requirement of a sensitive column.
#[derive(Clone, Debug)]
enum Bound {
    DistinctL(u32),
    EntropyL(f64),
    RecursiveCL { c: f64, l: u32 },
    TCloseness { t: f64, ground: Ground },
    Alpha(f64),
    Beta(f64),
    EnhancedBeta(f64),
}

/// A requirement names a column that the table does not have, or one with unfit values. Readers refuse such tables, so
/// this is a fault of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column '{column}' does not fit its requirement")]
pub struct UnfitColumn {
    /// The column.
    pub column: String,
}

impl Rules {
    /// Compiles the requirements; `kept` are the rows that take part, over which shares are measured.
    ///
    /// # Errors
    /// If a column is missing or unfit.
    pub fn compile(table: &Table, requirements: &[Requirement], kept: &[u32]) -> Result<Rules, UnfitColumn> {
        Self::compile_with(table, requirements, Measured::Rows(kept), shared_persons(table))
    }

    /// The same where others than the table know who has several rows.
    pub(crate) fn compile_for_persons(
        table: &Table,
        requirements: &[Requirement],
        kept: &[u32],
        person_of_row: Option<Vec<u32>>,
    ) -> Result<Rules, UnfitColumn> {
        Self::compile_with(table, requirements, Measured::Rows(kept), person_of_row)
    }

    /// Compiles the requirements for some rows of a whole table, over which shares are measured.
    ///
    /// # Errors
    /// If a column is missing or unfit.
    pub(crate) fn compile_within(
        table: &Table,
        requirements: &[Requirement],
        whole: &Whole<'_>,
    ) -> Result<Rules, UnfitColumn> {
        Self::compile_with(table, requirements, Measured::Whole(whole), shared_persons(table))
    }

    fn compile_with(
        table: &Table,
        requirements: &[Requirement],
        measured: Measured<'_>,
        person_of_row: Option<Vec<u32>>,
    ) -> Result<Rules, UnfitColumn> {
        let mut rules = Rules { k: 1, person_of_row, own_k: None, sensitive: Vec::new() };
        let column = |name: &str| table.column(name).ok_or_else(|| UnfitColumn { column: name.to_owned() });
        for requirement in requirements {
            rules.k = rules.k.max(requirement.k().unwrap_or(1));
            if let Some(name) = requirement.own_k_column() {
                rules.own_k = Some(OwnKs::of_rows(&own_k(column(name)?, rules.person_of_row.as_deref())?));
            }
            let Some(name) = requirement.sensitive_column() else { continue };
            let column = column(name)?;
            // Shares follow the order that a distance needs, so each requirement with a distance has its own copy of codes.
            let distance = requirement.distance();
            let known = rules.sensitive.iter().position(|sensitive| distance.is_none() && sensitive.column == name);
            let place = known.unwrap_or(rules.sensitive.len());
            if known.is_none() {
                let sensitive = Sensitive::of(column, distance.unwrap_or(Distance::Equal), &rules, measured)?;
                rules.sensitive.push(sensitive);
            }
            rules.sensitive[place].ask(requirement, |distance, shares| match distance {
                Distance::Equal => Ground::Equal,
                Distance::Ordered => Ground::ordered(shares),
                Distance::Hierarchical => Ground::hierarchical(&hierarchy_of(column), shares),
            });
        }
        Ok(rules)
    }

    /// Only k is asked, and each row is a person.
    pub fn k_only(k: u32) -> Rules {
        Rules { k, person_of_row: None, own_k: None, sensitive: Vec::new() }
    }

    /// The k every class needs.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// The k a row's person needs.
    pub fn k_of_row(&self, row: u32) -> u32 {
        self.own_k.as_ref().map_or(self.k, |own_k| own_k.of_row(row).max(self.k))
    }

    /// The same rules with the largest k that anybody asks for as everybody's k; `None` if all ask for the same.
    pub fn with_largest_k(&self) -> Option<Rules> {
        let own_k = self.own_k.as_ref()?;
        let (least, most) = (own_k.distinct.first()?, own_k.distinct.last()?);
        let k = self.k.max(*most);
        (k > self.k.max(*least)).then(|| Rules { k, own_k: None, ..self.clone() })
    }

    /// Whether weight k is enough for a class: nothing but k is asked, and each row is a person.
    pub fn weight_suffices(&self) -> bool {
        self.person_of_row.is_none() && self.own_k.is_none() && self.sensitive.is_empty()
    }

    /// Whether there is any requirement.
    pub fn asks_anything(&self) -> bool {
        self.k > 1 || self.own_k.is_some() || !self.sensitive.is_empty()
    }

    /// Whether any requirement compares a class with the whole release, so that leaving somebody out changes it for
    /// all others.
    pub fn measures_against_release(&self) -> bool {
        self.sensitive.iter().any(|sensitive| sensitive.compares_shares)
    }

    pub(crate) fn sensitive_column(&self, position: usize) -> &str {
        &self.sensitive[position].column
    }

    /// Whether a row holds a value of a compiled sensitive column.
    pub(crate) fn holds(&self, row: u32, position: usize, code: u32) -> bool {
        self.sensitive[position].codes[row as usize] == code
    }

    /// The person of a row. If each row is a person, the row's own number.
    pub fn person(&self, row: u32) -> u32 {
        self.person_of_row.as_ref().map_or(row, |person_of_row| person_of_row[row as usize])
    }

    /// For each row, its person, if some person has several rows.
    pub fn person_of_row(&self) -> Option<&[u32]> {
        self.person_of_row.as_deref()
    }
}

impl OwnKs {
    fn of_rows(ks: &[u32]) -> OwnKs {
        let mut distinct = ks.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        OwnKs { ranks: ranks(ks).0, distinct }
    }

    fn of_row(&self, row: u32) -> u32 {
        self.distinct[self.ranks[row as usize] as usize]
    }
}

impl Sensitive {
    fn of(
        column: &Column,
        distance: Distance,
        rules: &Rules,
        measured: Measured<'_>,
    ) -> Result<Sensitive, UnfitColumn> {
        let unfit = || UnfitColumn { column: column.name.clone() };
        let (code_of_id, n_codes) = match measured {
            Measured::Rows(_) => sensitive_codes(column, distance)?,
            Measured::Whole(whole) => sensitive_codes(whole.table.column(&column.name).ok_or_else(unfit)?, distance)?,
        };
        let codes: Vec<u32> = column
            .ids
            .par_iter()
            .map(|&id| if id == NULL { n_codes as u32 - 1 } else { code_of_id[id as usize] })
            .collect();
        let mut counts = vec![0u64; n_codes];
        match (measured, &rules.person_of_row) {
            (Measured::Whole(whole), _) => {
                let position = whole.table.position(&column.name).ok_or_else(unfit)?;
                let nulls = std::iter::once(n_codes as u32 - 1);
                let of_ids = code_of_id.iter().copied().chain(nulls).zip(&whole.counts[position]);
                of_ids.for_each(|(code, count)| counts[code as usize] += count);
            }
            (Measured::Rows(kept), None) => kept.iter().for_each(|&row| counts[codes[row as usize] as usize] += 1),
            (Measured::Rows(kept), Some(persons)) => {
                codes_of_persons(persons, &codes, kept).for_each(|code| counts[code as usize] += 1);
            }
        }
        Ok(Sensitive { codes, ..Sensitive::measured(&column.name, &counts) })
    }

    /// A column by how many persons hold each value. Nothing is asked of it yet, and no row has a code.
    pub(crate) fn measured(column: &str, counts: &[u64]) -> Sensitive {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let shares = counts.iter().map(|&count| count as f64 / total).collect();
        let column = column.to_owned();
        Sensitive { column, codes: Vec::new(), shares, bounds: Vec::new(), compares_shares: false }
    }

    /// Adds a requirement on the column's values. `ground` prepares a distance for the column's shares.
    pub(crate) fn ask(&mut self, requirement: &Requirement, ground: impl FnOnce(Distance, &[f64]) -> Ground) {
        self.bounds.push(match requirement {
            Requirement::K(_) | Requirement::PersonK { .. } => return,
            Requirement::DistinctL { l, .. } => Bound::DistinctL(*l),
            Requirement::EntropyL { l, .. } => Bound::EntropyL(*l),
            Requirement::RecursiveCL { c, l, .. } => Bound::RecursiveCL { c: *c, l: *l },
            Requirement::TCloseness { t, distance, .. } => {
                Bound::TCloseness { t: *t, ground: ground(*distance, &self.shares) }
            }
            Requirement::Alpha { alpha, .. } => Bound::Alpha(*alpha),
            Requirement::Beta { beta, .. } => Bound::Beta(*beta),
            Requirement::EnhancedBeta { beta, .. } => Bound::EnhancedBeta(*beta),
        });
        self.compares_shares |= requirement.compares_with_release();
    }
}

/// The codes of some rows, where each code of a person counts once.
fn codes_of_persons(person_of_row: &[u32], codes: &[u32], rows: &[u32]) -> impl Iterator<Item = u32> {
    let pair = |&row: &u32| (person_of_row[row as usize], codes[row as usize]);
    let mut pairs: Vec<(u32, u32)> = rows.iter().map(pair).collect();
    pairs.par_sort_unstable();
    pairs.dedup();
    pairs.into_iter().map(|(_, code)| code)
}

/// The person of each row, if some person has several rows.
pub(crate) fn shared_persons(table: &Table) -> Option<Vec<u32>> {
    let persons = table.person_column()?;
    (persons.texts.len() < table.n_rows).then(|| persons.ids.clone())
}

/// The own k of each row's person. If a person's rows differ, the largest counts.
fn own_k(column: &Column, person_of_row: Option<&[u32]>) -> Result<Vec<u32>, UnfitColumn> {
    let unfit = || UnfitColumn { column: column.name.clone() };
    let by_id: Option<Vec<u32>> = column.texts.iter().map(|text| text.parse().ok()).collect();
    let by_id = by_id.ok_or_else(unfit)?;
    let of_rows: Option<Vec<u32>> = column.ids.iter().map(|&id| by_id.get(id as usize).copied()).collect();
    let mut of_rows = of_rows.ok_or_else(unfit)?;
    if let Some(person_of_row) = person_of_row {
        let n_persons = person_of_row.iter().max().map_or(0, |&person| person as usize + 1);
        let mut of_persons = vec![0; n_persons];
        for (&person, &k) in person_of_row.iter().zip(&of_rows) {
            of_persons[person as usize] = k.max(of_persons[person as usize]);
        }
        of_rows = person_of_row.iter().map(|&person| of_persons[person as usize]).collect();
    }
    Ok(of_rows)
}

/// Codes of a sensitive column's texts in the order its distance needs, and how many there are with NULL, the last.
pub(crate) fn sensitive_codes(column: &Column, distance: Distance) -> Result<(Vec<u32>, usize), UnfitColumn> {
    let unfit = || UnfitColumn { column: column.name.clone() };
    let with_null = WithNull::of(column);
    let n_texts = column.texts.len();
    let n_null = usize::from(with_null == WithNull::Yes);
    // Typed values are compared by value (1.5 is 1.50), leaves of a hierarchy by their text.
    let by_text = column.value_type == ValueType::Text || column.hierarchy.is_some();
    match distance {
        Distance::Equal | Distance::Ordered => {
            let values: Option<Vec<_>> = (0..n_texts as u32)
                .map(|id| {
                    let value = if distance == Distance::Equal && by_text { None } else { Some(column.value(id)?) };
                    Some((value, column.texts.get(id), id))
                })
                .collect();
            let mut values = values.ok_or_else(unfit)?;
            // Codes by value and text, not by first appearance: nothing may depend on the order of the input.
            values.par_sort_unstable();
            let mut codes = vec![0; n_texts];
            let mut n_values = 0;
            for (position, (value, _, id)) in values.iter().enumerate() {
                n_values += usize::from(position == 0 || by_text || values[position - 1].0 != *value);
                codes[*id as usize] = n_values as u32 - 1;
            }
            Ok((codes, n_values + n_null))
        }
        Distance::Hierarchical => {
            let hierarchy = hierarchy_of(column);
            let tree = Tree::new(&hierarchy, with_null);
            let codes = tree.codes_of(&hierarchy, &column.texts);
            if codes.contains(&NULL) { Err(unfit()) } else { Ok((codes, tree.n_codes() as usize)) }
        }
    }
}

/// The column's hierarchy, or a flat one.
fn hierarchy_of(column: &Column) -> Hierarchy {
    match &column.hierarchy {
        Some(hierarchy) => Hierarchy::clone(hierarchy),
        None => Hierarchy::flat("*", column.texts.iter()),
    }
}
