//! [`Rules`]: the requirements of a release, compiled to codes, so that a partitioner can ask "may this class stand?"
//! in time that depends on the class alone.
//!
//! Definitions are those of [`kohort_model::Requirement`]. `kohort-verify` implements them a second time.

mod closeness;
mod tally;

pub(crate) use tally::Counts;
pub use tally::Tally;

use kohort_model::{Column, Distance, Hierarchy, NULL, Requirement, Table, ValueType};
use rayon::prelude::*;

use crate::encode::{Tree, WithNull};
pub(crate) use closeness::Ground;

/// Shares within this of a bound count as on it: less than the verifier allows, so that rounding in another order
/// there never refuses what stood here.
const TOLERANCE: f64 = 1e-10;

/// The requirements of a release, compiled for the rows that take part in it.
#[derive(Clone, Debug)]
pub struct Rules {
    k: u32,
    /// Per row of the table the person, where persons have several rows.
    person_of_row: Option<Vec<u32>>,
    own_k: Option<OwnKs>,
    sensitive: Vec<Sensitive>,
}

/// Each person's own k, ranked, so that a class can count how many of its rows ask for each.
#[derive(Clone, Debug)]
struct OwnKs {
    /// Every k that somebody asks for, ascending.
    distinct: Vec<u32>,
    /// Per row of the table the rank of its person's.
    ranks: Vec<u32>,
}

/// One sensitive column with everything asked of it.
#[derive(Clone, Debug)]
pub(crate) struct Sensitive {
    pub(crate) column: String,
    /// Per row of the table.
    pub(crate) codes: Vec<u32>,
    /// Per code its share in the release.
    pub(crate) shares: Vec<f64>,
    pub(crate) bounds: Vec<Bound>,
}

/// One requirement of a sensitive column.
#[derive(Clone, Debug)]
pub(crate) enum Bound {
    DistinctL(u32),
    EntropyL(f64),
    RecursiveCL { c: f64, l: u32 },
    TCloseness { t: f64, ground: Ground },
    Alpha(f64),
    Beta(f64),
    EnhancedBeta(f64),
}

/// A requirement names a column the table does not have, or holds what it should not. Readers refuse such tables, so
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
    /// Where a column is missing or unfit.
    pub fn compile(table: &Table, requirements: &[Requirement], kept: &[u32]) -> Result<Rules, UnfitColumn> {
        let mut rules = Rules { k: 1, person_of_row: shared_persons(table), own_k: None, sensitive: Vec::new() };
        for requirement in requirements {
            let bound = match requirement {
                Requirement::K(k) => {
                    rules.k = rules.k.max(*k);
                    continue;
                }
                Requirement::PersonK { column } => {
                    let column = table.column(column).ok_or_else(|| UnfitColumn { column: column.clone() })?;
                    rules.own_k = Some(OwnKs::of_rows(&own_k(column, rules.person_of_row.as_deref())?));
                    continue;
                }
                Requirement::DistinctL { l, .. } => Bound::DistinctL(*l),
                Requirement::EntropyL { l, .. } => Bound::EntropyL(*l),
                Requirement::RecursiveCL { c, l, .. } => Bound::RecursiveCL { c: *c, l: *l },
                Requirement::TCloseness { t, distance, column } => {
                    // Shares follow the order that the distance needs, so each such bound has its own copy of codes.
                    let column = table.column(column).ok_or_else(|| UnfitColumn { column: column.clone() })?;
                    let mut sensitive = Sensitive::of(column, *distance, &rules, kept)?;
                    let ground = match distance {
                        Distance::Equal => Ground::equal(),
                        Distance::Ordered => Ground::ordered(&sensitive.shares),
                        Distance::Hierarchical => Ground::hierarchical(&hierarchy_of(column), &sensitive.shares),
                    };
                    sensitive.bounds.push(Bound::TCloseness { t: *t, ground });
                    rules.sensitive.push(sensitive);
                    continue;
                }
                Requirement::Alpha { alpha, .. } => Bound::Alpha(*alpha),
                Requirement::Beta { beta, .. } => Bound::Beta(*beta),
                Requirement::EnhancedBeta { beta, .. } => Bound::EnhancedBeta(*beta),
            };
            let name = requirement.column().unwrap_or_default();
            if let Some(sensitive) = rules.sensitive.iter_mut().find(|sensitive| sensitive.column == name) {
                sensitive.bounds.push(bound);
                continue;
            }
            let column = table.column(name).ok_or_else(|| UnfitColumn { column: name.to_owned() })?;
            let mut sensitive = Sensitive::of(column, Distance::Equal, &rules, kept)?;
            sensitive.bounds.push(bound);
            rules.sensitive.push(sensitive);
        }
        Ok(rules)
    }

    /// k alone, each row a person.
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

    /// The same with the largest k that anybody asks for as everybody's; `None` where nobody's differs from it.
    pub fn with_largest_k(&self) -> Option<Rules> {
        let own_k = self.own_k.as_ref()?;
        let (least, most) = (own_k.distinct.first()?, own_k.distinct.last()?);
        let k = self.k.max(*most);
        (k > self.k.max(*least)).then(|| Rules { k, own_k: None, ..self.clone() })
    }

    /// Whether a class may stand as soon as it weighs k: nothing but k is asked and each row is a person.
    pub fn weight_suffices(&self) -> bool {
        self.person_of_row.is_none() && self.own_k.is_none() && self.sensitive.is_empty()
    }

    /// Whether there is a table that does not satisfy it.
    pub fn asks_anything(&self) -> bool {
        self.k > 1 || self.own_k.is_some() || !self.sensitive.is_empty()
    }

    /// Whether any requirement compares a class with the whole release, so that leaving somebody out changes it for
    /// all others.
    pub fn measures_against_release(&self) -> bool {
        self.sensitive.iter().flat_map(|sensitive| &sensitive.bounds).any(Bound::compares_shares)
    }

    /// The name of a compiled sensitive column.
    pub(crate) fn sensitive_column(&self, position: usize) -> &str {
        &self.sensitive[position].column
    }

    /// Whether a row holds a value of a compiled sensitive column.
    pub(crate) fn holds(&self, row: u32, position: usize, code: u32) -> bool {
        self.sensitive[position].codes[row as usize] == code
    }

    /// The person of a row: a number of its own where each row is one.
    pub fn person(&self, row: u32) -> u32 {
        self.person_of_row.as_ref().map_or(row, |person_of_row| person_of_row[row as usize])
    }

    /// Per row its person, where some person has several rows.
    pub fn person_of_row(&self) -> Option<&[u32]> {
        self.person_of_row.as_deref()
    }
}

impl OwnKs {
    fn of_rows(ks: &[u32]) -> OwnKs {
        let mut distinct = ks.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let rank = |k: &u32| distinct.binary_search(k).expect("every k is among the distinct ones") as u32;
        OwnKs { ranks: ks.iter().map(rank).collect(), distinct }
    }

    fn of_row(&self, row: u32) -> u32 {
        self.distinct[self.ranks[row as usize] as usize]
    }
}

impl Bound {
    /// Whether it compares a class with the whole release.
    fn compares_shares(&self) -> bool {
        match self {
            Bound::TCloseness { .. } | Bound::Beta(_) | Bound::EnhancedBeta(_) => true,
            Bound::DistinctL(_) | Bound::EntropyL(_) | Bound::RecursiveCL { .. } | Bound::Alpha(_) => false,
        }
    }
}

impl Sensitive {
    fn of(column: &Column, distance: Distance, rules: &Rules, kept: &[u32]) -> Result<Sensitive, UnfitColumn> {
        let (code_of_id, n_codes) = sensitive_codes(column, distance)?;
        let codes: Vec<u32> = column
            .ids
            .par_iter()
            .map(|&id| if id == NULL { n_codes as u32 - 1 } else { code_of_id[id as usize] })
            .collect();
        let mut counts = vec![0u64; n_codes];
        match &rules.person_of_row {
            None => kept.iter().for_each(|&row| counts[codes[row as usize] as usize] += 1),
            Some(person_of_row) => {
                let mut pairs: Vec<(u32, u32)> =
                    kept.iter().map(|&row| (person_of_row[row as usize], codes[row as usize])).collect();
                pairs.par_sort_unstable();
                pairs.dedup();
                pairs.iter().for_each(|&(_, code)| counts[code as usize] += 1);
            }
        }
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let shares = counts.iter().map(|&count| count as f64 / total).collect();
        Ok(Sensitive { column: column.name.clone(), codes, shares, bounds: Vec::new() })
    }
}

/// The person of each row, where some person has several.
pub(crate) fn shared_persons(table: &Table) -> Option<Vec<u32>> {
    let persons = table.person_column()?;
    (persons.texts.len() < table.n_rows).then(|| persons.ids.clone())
}

/// Each row's person's own k: where a person's rows differ, the largest.
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
fn sensitive_codes(column: &Column, distance: Distance) -> Result<(Vec<u32>, usize), UnfitColumn> {
    let unfit = || UnfitColumn { column: column.name.clone() };
    let with_null = if column.has_nulls() { WithNull::Yes } else { WithNull::No };
    let n_texts = column.texts.len();
    let n_null = usize::from(with_null == WithNull::Yes);
    // Values are equal by value where they have a type, 1.5 is 1.50, but leaves of a hierarchy by their text.
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
            let mut code_of_node = vec![NULL; hierarchy.n_nodes()];
            for code in 0..tree.n_codes() {
                if let Some(leaf) = tree.leaf_node(code) {
                    code_of_node[leaf as usize] = code;
                }
            }
            let codes: Option<Vec<u32>> =
                column.texts.iter().map(|text| hierarchy.leaf(text).map(|leaf| code_of_node[leaf as usize])).collect();
            Ok((codes.ok_or_else(unfit)?, tree.n_codes() as usize))
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
