//! [`Base`]: the partitioner of the spec, on joined rows.
//!
//! # Deviations
//! Refinement partitions again and again, and `auto` takes long on many rows. So Mondrian cuts these into pieces first, and makes
//! the classes of pieces that stay large. If presence is public, Mondrian always runs beside `auto`, because `auto` makes all joined rows lose
//! little, and few of these are private. The classes in which private rows lose less are taken. [`Base::ran`] tells
//! which partitioners made classes.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use kohort_model::spec::{Algorithm, RegisterMethod, Spec};
use kohort_model::{Progress, Quiet};
use rayon::prelude::*;

use super::crowd::{Crowd, Draft};
use super::trim::trim;
use crate::encode::{Domain, Rows};
use crate::partition::{Classes, KeepTree, Mondrian, Partitioner, Task, Unreachable};
use crate::requirement::Rules;

/// With more folded rows than this, `auto` does not run in refinement.
const FEW_ROWS: usize = 1 << 11;

/// The partitioner of the spec, on joined rows.
pub(super) struct Base<'a> {
    /// As the spec says.
    pub(super) partitioner: &'a dyn Partitioner,
    /// The partitioner that runs beside it.
    quick: Option<Mondrian>,
    /// With more folded rows than this, `quick` takes the place of the partitioner.
    few_rows: usize,
    /// The names of the partitioners that made classes.
    ran: Mutex<BTreeSet<&'static str>>,
}

impl<'a> Base<'a> {
    pub(super) fn new(partitioner: &'a dyn Partitioner, spec: &Spec) -> Base<'a> {
        let quick = Mondrian { spec: spec.mondrian, keep_tree: KeepTree::No };
        let quick = (spec.algorithm == Algorithm::Auto).then_some(quick);
        let few_rows = if spec.register.method == RegisterMethod::Direct { usize::MAX } else { FEW_ROWS };
        Base { partitioner, quick, few_rows, ran: Mutex::default() }
    }

    pub(super) fn ran(&self) -> Vec<&'static str> {
        let ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        if ran.is_empty() { vec![self.partitioner.name()] } else { ran.iter().copied().collect() }
    }

    fn runs(&self, partitioner: &dyn Partitioner) {
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).insert(partitioner.name());
    }

    /// Classes of at least k of these rows, as lists of folded rows. Only the positions of rows decide.
    pub(super) fn partition(
        &self,
        rows: &Rows,
        domains: &[Domain],
        k: u32,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<u32>>, Unreachable> {
        let many = self.quick.filter(|_| rows.len() > self.few_rows);
        let Some(quick) = many else {
            self.runs(self.partitioner);
            return Ok(in_order(&by(self.partitioner, rows, domains, k, progress)?));
        };
        self.runs(&quick);
        // The average number of persons in half of `FEW_ROWS` folded rows.
        let piece = (rows.n_members() as u64 * FEW_ROWS as u64 / (2 * rows.len() as u64)).max(1) as u32;
        let pieces = in_order(&by(&quick, rows, domains, piece.max(k), progress)?);
        let classes = |piece: &Vec<u32>| {
            let within = rows.part(piece);
            let lists = if piece.len() > FEW_ROWS {
                by(&quick, &within, domains, k, &Quiet(progress))?
            } else {
                self.runs(self.partitioner);
                by(self.partitioner, &within, domains, k, &Quiet(progress))?
            };
            let lists = in_order(&lists);
            Ok(lists.into_iter().map(|list| list.into_iter().map(|row| piece[row as usize]).collect()).collect())
        };
        let lists: Vec<Vec<Vec<u32>>> = pieces.par_iter().map(classes).collect::<Result<_, Unreachable>>()?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// Classes of k of these rows that contain a private row, without register persons they don't need. `draft` tells
    /// which persons a folded row represents.
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
        let Some(quick) = &self.quick else { return drafts_by(self.partitioner) };
        if rows.len() > self.few_rows {
            self.runs(quick);
            return drafts_by(quick);
        }
        let (quickly, thoroughly) = (drafts_by(quick)?, drafts_by(self.partitioner)?);
        if crowd.loss(&quickly) <= crowd.loss(&thoroughly) {
            self.runs(quick);
            return Ok(quickly);
        }
        self.runs(self.partitioner);
        Ok(thoroughly)
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
    partitioner.partition(&Task::of_everybody(rows, domains, &rules, progress))
}
