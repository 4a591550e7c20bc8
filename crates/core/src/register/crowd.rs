//! [`Crowd`]: everybody of the join, folded, and who counts where.
//!
//! A joined row is a private row, with or without the register's row of the same person, or a register person by
//! itself. If the register describes the person of a private row differently, the row counts only in a box that
//! contains both places: a reader looks the person up at the register's place, and rules them out of any box that does
//! not contain it.

use kohort_model::spec::Unmatched;
use kohort_model::{InRegister, JoinedRegister, NULL};

use rayon::prelude::*;

use super::JoinedClass;
use super::scale::private_share;
use crate::encode::bounds::{self, Bounds, include};
use crate::encode::{Domain, Encoded, Rows};
use crate::ranks::first_that;
use crate::requirement::Rules;

/// Everybody of the join.
pub(super) struct Crowd<'a> {
    pub(super) joined: &'a JoinedRegister,
    pub(super) encoded: &'a Encoded<'a>,
    /// The rules of the private table, which know each person's own k.
    pub(super) rules: &'a Rules,
    /// Private rows that take part and register persons, folded together; members of a folded row ascend, so private
    /// rows come first.
    pub(super) rows: Rows,
    /// The folded row of each private row; NULL for one that takes no part.
    folded: Vec<u32>,
    /// How private persons count if no register row matches them.
    pub(super) unmatched: Unmatched,
    /// For each column, how wide the private table's own range is.
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
    /// A box that its cells must hold beside its rows; empty if there is none.
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
        let private_widths = (0..encoded.domains.len()).map(|column| private_share(joined, encoded, column)).collect();
        Crowd { joined, encoded, rules, rows, folded, unmatched, private_widths }
    }

    pub(super) fn domains(&self) -> &'a [Domain] {
        &self.encoded.domains
    }

    pub(super) fn k(&self) -> u32 {
        self.rules.k()
    }

    /// The folded row with these codes.
    pub(super) fn find(&self, codes: &[u32]) -> Option<u32> {
        let n_rows = self.rows.len() as u32;
        let row = first_that(0..n_rows, |row| self.rows.cells(row) >= codes);
        (row < n_rows && self.rows.cells(row) == codes).then_some(row)
    }

    pub(super) fn takes_part(&self, private: u32) -> bool {
        self.folded[private as usize] != NULL
    }

    /// The folded row of a private row that takes part.
    pub(super) fn folded(&self, private: u32) -> u32 {
        self.folded[private as usize]
    }

    pub(super) fn private_rows(&self, folded: u32) -> &[u32] {
        let members = self.rows.members(folded);
        &members[..self.n_private(members)]
    }

    pub(super) fn register_rows(&self, folded: u32) -> &[u32] {
        let members = self.rows.members(folded);
        &members[self.n_private(members)..]
    }

    fn n_private(&self, members: &[u32]) -> usize {
        members.partition_point(|&member| (member as usize) < self.joined.n_microdata)
    }

    pub(super) fn n_register(&self, folded: u32) -> u64 {
        self.register_rows(folded).len() as u64
    }

    /// The class of these folded rows: all their persons, or nobody if no private row is among them.
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
        let mut bounds = vec![bounds::EMPTY; self.rows.n_columns()];
        draft.microdata.iter().for_each(|&row| include(&mut bounds, self.rows.cells(self.folded(row))));
        bounds
    }

    /// The box of a class: the smallest that holds its rows, and what it must hold beside them.
    pub(super) fn bounds(&self, draft: &Draft) -> Bounds {
        let mut bounds = self.private_bounds(draft);
        draft.register.iter().for_each(|&row| include(&mut bounds, self.rows.cells(row)));
        bounds::unite(&mut bounds, &draft.reach);
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

    /// The intervals that cells show to cover a box.
    pub(super) fn hull(&self, bounds: &[(u32, u32)]) -> Bounds {
        bounds.iter().zip(self.domains()).map(|(&(lo, hi), domain)| domain.hull(lo, hi)).collect()
    }

    /// What a row loses in a box.
    pub(super) fn width(&self, bounds: &[(u32, u32)]) -> f64 {
        bounds::width(self.domains(), bounds)
    }

    /// What a cell loses that must hold these codes, 0 to 1: its width, by a measure of domains, over the private
    /// table's own range. A cell that is wider than the range loses all.
    pub(super) fn lost(&self, column: usize, measure: fn(&Domain, u32, u32) -> f64, (lo, hi): (u32, u32)) -> f64 {
        match measure(&self.domains()[column], lo, hi) {
            0.0 => 0.0,
            width => (width / self.private_widths[column]).min(1.0),
        }
    }

    /// The reported NCP of the private rows in these classes.
    pub(super) fn loss(&self, drafts: &[Draft]) -> f64 {
        let of_row = |draft: &Draft| -> f64 {
            let bounds = self.bounds(draft).into_iter().enumerate();
            bounds.map(|(column, interval)| self.lost(column, Domain::leaf_share, interval)).sum()
        };
        drafts.iter().map(|draft| of_row(draft) * draft.microdata.len() as f64).sum()
    }

    pub(super) fn needed(&self, draft: &Draft) -> u64 {
        let own_k = draft.microdata.iter().map(|&row| self.rules.k_of_row(row)).max().unwrap_or(0);
        u64::from(own_k.max(self.k()))
    }

    /// The number of persons of a class who count in any box.
    pub(super) fn n_sure(&self, draft: &Draft) -> u64 {
        self.n_counting(draft, |row| self.registered(row).is_none())
    }

    /// How many persons of a class count in what it shows.
    pub(super) fn n_counted(&self, draft: &Draft) -> u64 {
        let shown = self.hull(&self.bounds(draft));
        self.n_counting(draft, |row| self.registered(row).is_none_or(|other| bounds::holds(&shown, &self.codes(other))))
    }

    /// The number of persons of a class who count. `counts` tells which private rows do.
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

    pub(super) fn stands(&self, draft: &Draft) -> bool {
        let needed = self.needed(draft);
        self.n_sure(draft) >= needed || self.n_counted(draft) >= needed
    }

    /// The finished classes. Drafts of one sensitive group that show the same cells become one class.
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
                }),
            }
        }
        classes
    }

    /// What the register says of the person of a private row.
    pub(super) fn in_register(&self, private: u32) -> InRegister {
        self.joined.persons[private as usize]
    }

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
