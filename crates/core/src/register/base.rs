//! [`Base`]: the partitioner of the spec, on joined rows.
//!
//! # Deviations
//! `auto` takes long on many rows, so Mondrian cuts these into pieces first, and makes the classes of pieces that stay
//! large. Where presence is public Mondrian is always asked beside `auto`, which makes all joined rows lose little, of
//! which private rows are few: whichever makes private rows lose less is taken. [`Base::ran`] tells who made classes

use std::sync::atomic::{AtomicBool, Ordering};

use kohort_model::spec::{Algorithm, Leftovers, Spec};
use kohort_model::{Progress, Quiet};
use rayon::prelude::*;

use super::crowd::{Crowd, Draft};
use super::trim::trim;
use crate::encode::{Domain, Rows};
use crate::partition::{Classes, KeepTree, Mondrian, Partitioner, Task, Unreachable};
use crate::requirement::Rules;

/// On more folded rows `auto` is not asked.
const FEW_ROWS: usize = 1 << 11;

/// The partitioner of the spec, on joined rows.
pub(super) struct Base<'a> {
    /// As the spec says.
    pub(super) partitioner: &'a dyn Partitioner,
    /// What is asked beside it.
    quick: Option<Mondrian>,
    ran: AtomicBool,
    quick_ran: AtomicBool,
}

impl<'a> Base<'a> {
    pub(super) fn new(partitioner: &'a dyn Partitioner, spec: &Spec) -> Base<'a> {
        let quick = Mondrian { spec: spec.mondrian, keep_tree: KeepTree::No };
        let quick = (spec.algorithm == Algorithm::Auto).then_some(quick);
        Base { partitioner, quick, ran: AtomicBool::new(false), quick_ran: AtomicBool::new(false) }
    }

    /// The partitioners that made classes.
    pub(super) fn ran(&self) -> Vec<&'static str> {
        let name = self.partitioner.name();
        let quick = self.quick.as_ref().filter(|_| self.quick_ran.load(Ordering::Relaxed)).map(Mondrian::name);
        let asked = (quick.is_none() || self.ran.load(Ordering::Relaxed)).then_some(name);
        asked.into_iter().chain(quick).collect()
    }

    /// Classes of k of these rows, as lists of folded rows. Nothing but where rows lie decides.
    pub(super) fn partition(
        &self,
        rows: &Rows,
        domains: &[Domain],
        k: u32,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<u32>>, Unreachable> {
        let many = self.quick.filter(|_| rows.len() > FEW_ROWS);
        let Some(quick) = many else {
            self.ran.store(true, Ordering::Relaxed);
            return Ok(in_order(&by(self.partitioner, rows, domains, k, progress)?));
        };
        self.quick_ran.store(true, Ordering::Relaxed);
        // As many persons as half of so many rows have on average.
        let piece = (rows.n_members() as u64 * FEW_ROWS as u64 / (2 * rows.len() as u64)).max(1) as u32;
        let pieces = in_order(&by(&quick, rows, domains, piece.max(k), progress)?);
        let classes = |piece: &Vec<u32>| {
            let within = rows.part(piece);
            let lists = if piece.len() > FEW_ROWS {
                by(&quick, &within, domains, k, &Quiet(progress))?
            } else {
                self.ran.store(true, Ordering::Relaxed);
                by(self.partitioner, &within, domains, k, &Quiet(progress))?
            };
            let lists = in_order(&lists);
            Ok(lists.into_iter().map(|list| list.into_iter().map(|row| piece[row as usize]).collect()).collect())
        };
        let lists: Vec<Vec<Vec<u32>>> = pieces.par_iter().map(classes).collect::<Result<_, Unreachable>>()?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// Classes of k of these rows that hold a private row, without register persons they don't need. `draft` says who
    /// stands behind folded rows.
    pub(super) fn drafts(
        &self,
        crowd: &Crowd<'_>,
        rows: &Rows,
        progress: &dyn Progress,
        draft: impl Fn(&[u32]) -> Draft + Sync,
    ) -> Result<Vec<Draft>, Unreachable> {
        let drafts_by = |partitioner: &dyn Partitioner| {
            let classes = by(partitioner, rows, crowd.domains(), crowd.k(), progress)?;
            let finish = |class: usize| {
                let mut draft = draft(classes.rows(class));
                (!draft.microdata.is_empty()).then(|| {
                    trim(crowd, &mut draft);
                    draft
                })
            };
            Ok((0..classes.len()).into_par_iter().filter_map(finish).collect::<Vec<_>>())
        };
        let quick = match &self.quick {
            Some(quick) if rows.len() > FEW_ROWS => {
                self.quick_ran.store(true, Ordering::Relaxed);
                return drafts_by(quick);
            }
            Some(quick) => Some(drafts_by(quick)?),
            None => None,
        };
        let thorough = drafts_by(self.partitioner)?;
        match quick.filter(|quick| crowd.loss(quick) <= crowd.loss(&thorough)) {
            Some(quick) => {
                self.quick_ran.store(true, Ordering::Relaxed);
                Ok(quick)
            }
            None => {
                self.ran.store(true, Ordering::Relaxed);
                Ok(thorough)
            }
        }
    }
}

/// The rows of each class, ascending.
fn in_order(classes: &Classes) -> Vec<Vec<u32>> {
    let mut lists = classes.to_lists();
    lists.par_iter_mut().for_each(|list| list.sort_unstable());
    lists
}

fn by(
    partitioner: &dyn Partitioner,
    rows: &Rows,
    domains: &[Domain],
    k: u32,
    progress: &dyn Progress,
) -> Result<Classes, Unreachable> {
    let rules = Rules::k_only(k);
    partitioner.partition(&Task { rows, domains, rules: &rules, allowance: 0, leftovers: Leftovers::Merge, progress })
}
