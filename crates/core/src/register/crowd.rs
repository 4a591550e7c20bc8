//! [`Crowd`]: everybody of the join, folded, and who counts where.
//!
//! A joined row is a private row, with or without the register's row of the same person, or a register person by
//! itself. A private row whose person the register describes otherwise counts only in a box that holds both: a reader
//! who looks the person up finds them nowhere else, and rules them out of a box that does not hold them.

use std::cmp::Ordering;

use kohort_model::spec::Unmatched;
use kohort_model::{InRegister, JoinedRegister, NULL};

use rayon::prelude::*;

use super::JoinedClass;
use crate::encode::{Domain, Encoded, Rows};
use crate::requirement::Rules;

/// One interval of codes per column.
pub(super) type Bounds = Vec<(u32, u32)>;

/// Everybody of the join.
pub(super) struct Crowd<'a> {
    joined: &'a JoinedRegister,
    encoded: &'a Encoded<'a>,
    /// Of the private table: who is whom, and who asks for a k of their own.
    rules: &'a Rules,
    /// Private rows that take part and register persons, folded together; members of a folded row ascend, so private
    /// rows come first.
    pub(super) rows: Rows,
    /// Per private row its folded row, NULL where it takes no part.
    folded: Vec<u32>,
    unmatched: Unmatched,
    /// Per column how wide the private table's own range is.
    private_widths: Vec<f64>,
}

/// A class in the making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Draft {
    /// Private rows, at least one.
    pub(super) microdata: Vec<u32>,
    /// Folded rows all of whose register persons are in the class.
    pub(super) register: Vec<u32>,
    /// The sensitive group of its private rows.
    pub(super) group: u32,
    /// What its cells must hold beside its rows; empty where that is nothing.
    pub(super) reach: Bounds,
}

impl<'a> Crowd<'a> {
    /// `kept` are the private rows that take part, and `is_kept` tells which register persons do.
    pub(super) fn new(
        joined: &'a JoinedRegister,
        encoded: &'a Encoded<'a>,
        rules: &'a Rules,
        (kept, is_kept): (&[u32], impl Fn(u32) -> bool),
        unmatched: Unmatched,
    ) -> Crowd<'a> {
        let register = joined.register_rows().filter(|&row| is_kept(row));
        let everybody: Vec<u32> = kept.iter().copied().chain(register).collect();
        let rows = encoded.fold(&everybody);
        let mut folded = vec![NULL; joined.n_microdata];
        for row in 0..rows.len() as u32 {
            let private = rows.members(row).iter().take_while(|&&member| (member as usize) < joined.n_microdata);
            private.for_each(|&member| folded[member as usize] = row);
        }
        let private_widths = (0..encoded.domains.len()).map(|column| private_width(joined, encoded, column)).collect();
        Crowd { joined, encoded, rules, rows, folded, unmatched, private_widths }
    }

    pub(super) fn domains(&self) -> &'a [Domain] {
        &self.encoded.domains
    }

    pub(super) fn k(&self) -> u32 {
        self.rules.k()
    }

    /// How private persons count whom no register row matches.
    pub(super) fn unmatched(&self) -> Unmatched {
        self.unmatched
    }

    /// The folded row with these codes.
    pub(super) fn find(&self, codes: &[u32]) -> Option<u32> {
        let (mut low, mut high) = (0, self.rows.len() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.rows.cells(middle).cmp(codes) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Whether a private row takes part.
    pub(super) fn takes_part(&self, private: u32) -> bool {
        self.folded[private as usize] != NULL
    }

    /// The folded row of a private row that takes part.
    pub(super) fn folded(&self, private: u32) -> u32 {
        self.folded[private as usize]
    }

    /// The private rows of a folded row.
    pub(super) fn private_rows(&self, folded: u32) -> &[u32] {
        let members = self.rows.members(folded);
        &members[..self.n_private(members)]
    }

    /// The register persons of a folded row.
    pub(super) fn register_rows(&self, folded: u32) -> &[u32] {
        let members = self.rows.members(folded);
        &members[self.n_private(members)..]
    }

    fn n_private(&self, members: &[u32]) -> usize {
        members.partition_point(|&member| (member as usize) < self.joined.n_microdata)
    }

    /// How many register persons a folded row has.
    pub(super) fn n_register(&self, folded: u32) -> u64 {
        self.register_rows(folded).len() as u64
    }

    /// The class of these folded rows: everybody of them, or nobody where no private row is among them.
    pub(super) fn draft(&self, rows: &[u32]) -> Draft {
        let microdata: Vec<u32> = rows.iter().flat_map(|&row| self.private_rows(row)).copied().collect();
        if microdata.is_empty() {
            return Draft::default();
        }
        let register = rows.iter().copied().filter(|&row| self.n_register(row) > 0).collect();
        Draft { microdata, register, ..Draft::default() }
    }

    /// Everybody of a class, as joined rows.
    pub(super) fn persons(&self, draft: &Draft) -> Vec<u32> {
        let register = draft.register.iter().flat_map(|&row| self.register_rows(row));
        draft.microdata.iter().chain(register).copied().collect()
    }

    /// The smallest box that holds the private rows of a class.
    pub(super) fn private_bounds(&self, draft: &Draft) -> Bounds {
        let mut bounds = vec![(u32::MAX, 0); self.rows.n_columns()];
        draft.microdata.iter().for_each(|&row| include(&mut bounds, self.rows.cells(self.folded(row))));
        bounds
    }

    /// The box of a class: the smallest that holds its rows, and what it must hold beside them.
    pub(super) fn bounds(&self, draft: &Draft) -> Bounds {
        let mut bounds = self.private_bounds(draft);
        draft.register.iter().for_each(|&row| include(&mut bounds, self.rows.cells(row)));
        for (bound, reach) in bounds.iter_mut().zip(&draft.reach) {
            *bound = (bound.0.min(reach.0), bound.1.max(reach.1));
        }
        bounds
    }

    /// Makes the cells of a class hold what the register says of its private persons, so that all of them count.
    pub(super) fn reach_registered(&self, draft: &mut Draft) {
        let mut reach = self.bounds(draft);
        for other in draft.microdata.iter().filter_map(|&row| self.registered(row)) {
            include(&mut reach, &self.codes(other));
        }
        draft.reach = reach;
    }

    /// What cells show that must hold a box.
    pub(super) fn hull(&self, bounds: &[(u32, u32)]) -> Bounds {
        bounds.iter().zip(self.domains()).map(|(&(lo, hi), domain)| domain.hull(lo, hi)).collect()
    }

    /// What a row loses in a box.
    pub(super) fn width(&self, bounds: &[(u32, u32)]) -> f64 {
        bounds.iter().zip(self.domains()).map(|(&(lo, hi), domain)| domain.width(lo, hi)).sum()
    }

    /// What a row loses in the smallest box that holds two.
    pub(super) fn width_of_both(&self, a: &[(u32, u32)], b: &[(u32, u32)]) -> f64 {
        let united = a.iter().zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        self.domains().iter().zip(united).map(|(domain, (lo, hi))| domain.width(lo, hi)).sum()
    }

    /// What a cell loses that must hold these codes, 0 to 1: its width, by a measure of domains, over the private
    /// table's own range. A cell that is wider than the range loses all.
    pub(super) fn lost(&self, column: usize, measure: fn(&Domain, u32, u32) -> f64, (lo, hi): (u32, u32)) -> f64 {
        match measure(&self.domains()[column], lo, hi) {
            0.0 => 0.0,
            width => (width / self.private_widths[column]).min(1.0),
        }
    }

    /// What private rows lose in these classes by NCP, as it is reported.
    pub(super) fn loss(&self, drafts: &[Draft]) -> f64 {
        let of_row = |draft: &Draft| -> f64 {
            let bounds = self.bounds(draft).into_iter().enumerate();
            bounds.map(|(column, interval)| self.lost(column, Domain::leaf_share, interval)).sum()
        };
        drafts.iter().map(|draft| of_row(draft) * draft.microdata.len() as f64).sum()
    }

    /// How many persons a class needs.
    pub(super) fn needed(&self, draft: &Draft) -> u64 {
        let own_k = draft.microdata.iter().map(|&row| self.rules.k_of_row(row)).max().unwrap_or(0);
        u64::from(own_k.max(self.k()))
    }

    /// How many persons of a class count whatever its box.
    pub(super) fn n_sure(&self, draft: &Draft) -> u64 {
        self.n_counting(draft, |row| self.registered(row).is_none())
    }

    /// How many persons of a class count in what it shows.
    pub(super) fn n_counted(&self, draft: &Draft) -> u64 {
        let shown = self.hull(&self.bounds(draft));
        self.n_counting(draft, |row| {
            self.registered(row).is_none_or(|other| {
                shown.iter().enumerate().all(|(column, &(lo, hi))| {
                    let code = self.encoded.code(column, other);
                    lo <= code && code <= hi
                })
            })
        })
    }

    /// How many persons of a class count, of its private rows those that do.
    fn n_counting(&self, draft: &Draft, counts: impl Fn(u32) -> bool) -> u64 {
        let register: u64 = draft.register.iter().map(|&row| self.n_register(row)).sum();
        let private = || draft.microdata.iter().filter(|&&row| counts(row));
        let n_private = private().count() as u64;
        match self.unmatched {
            Unmatched::Count => register + n_private,
            Unmatched::Doubt => {
                let matched = private().filter(|&&row| self.in_register(row) != InRegister::Absent);
                n_private.max(register + matched.count() as u64)
            }
        }
    }

    /// Whether enough persons count.
    pub(super) fn stands(&self, draft: &Draft) -> bool {
        let needed = self.needed(draft);
        self.n_sure(draft) >= needed || self.n_counted(draft) >= needed
    }

    /// Finished classes: those of one group that show the same are one.
    pub(super) fn classes(&self, drafts: Vec<Draft>) -> Vec<JoinedClass> {
        let mut shown: Vec<(Bounds, Draft)> =
            drafts.into_par_iter().map(|draft| (self.hull(&self.bounds(&draft)), draft)).collect();
        shown.par_sort_by(|a, b| a.0.cmp(&b.0).then(a.1.group.cmp(&b.1.group)));
        let mut classes: Vec<JoinedClass> = Vec::with_capacity(shown.len());
        for (cells, draft) in shown {
            let register = draft.register.iter().flat_map(|&row| self.register_rows(row)).copied();
            match classes.last_mut() {
                Some(class) if class.group == draft.group && class.cells == cells => {
                    class.register.extend(register);
                    class.microdata.extend(draft.microdata);
                }
                _ => classes.push(JoinedClass {
                    register: register.collect(),
                    microdata: draft.microdata,
                    group: draft.group,
                    cells,
                    n_private: 0,
                    n_persons: 0,
                }),
            }
        }
        for class in &mut classes {
            class.n_private = class.microdata.len() as u64;
            class.n_persons = class.n_private + class.register.len() as u64;
        }
        classes
    }

    /// By how much the persons of a class are more than its private persons need, each counted.
    pub(super) fn deviation(&self, class: &JoinedClass) -> f64 {
        class.microdata.iter().map(|&row| class.n_persons as f64 - f64::from(self.rules.k_of_row(row))).sum()
    }

    /// The names of the quasi columns.
    pub(super) fn column_names(&self) -> impl Iterator<Item = &str> {
        self.joined.rows.columns.iter().map(|column| column.name.as_str())
    }

    /// The k that the person of a private row needs.
    pub(super) fn k_of_row(&self, private: u32) -> u32 {
        self.rules.k_of_row(private)
    }

    /// What the register says of the person of a private row.
    pub(super) fn in_register(&self, private: u32) -> InRegister {
        self.joined.persons[private as usize]
    }

    /// The codes of a joined row.
    pub(super) fn codes(&self, row: u32) -> Vec<u32> {
        (0..self.domains().len()).map(|column| self.encoded.code(column, row)).collect()
    }

    /// The joined row of what the register says otherwise about the person of a private row.
    fn registered(&self, private: u32) -> Option<u32> {
        match self.in_register(private) {
            InRegister::Absent | InRegister::Same(_) => None,
            InRegister::Differs(row) => Some(row),
        }
    }
}

/// How wide the private table's own range is in a column of numbers or dates; all of it elsewhere.
fn private_width(joined: &JoinedRegister, encoded: &Encoded<'_>, column: usize) -> f64 {
    let domain = &encoded.domains[column];
    if domain.tree().is_some() {
        return 1.0;
    }
    let codes = (0..joined.n_microdata as u32).map(|row| encoded.code(column, row));
    let codes = codes.filter(|&code| Some(code) != domain.null());
    let range = codes.fold((u32::MAX, 0), |(lo, hi), code| (lo.min(code), hi.max(code)));
    if range.0 > range.1 { 0.0 } else { domain.width(range.0, range.1) }
}

/// Grows bounds to hold a row's cells.
pub(super) fn include(bounds: &mut [(u32, u32)], cells: &[u32]) {
    for (bound, &code) in bounds.iter_mut().zip(cells) {
        *bound = (bound.0.min(code), bound.1.max(code));
    }
}
