//! Refinement: each class of the plain release is partitioned again, together with the register persons in its box.
//!
//! # Guarantee
//! every class lies within what the plain class of its private rows shows, and holds private rows of no other; every
//! register person is in at most one
//! # Paper
//! `[SMP10]` section 4
//! # Deviations
//! plain classes may overlap: those that show least choose first, and what they don't need is left to the others
//! # Cost
//! per plain class a range query and the partitioner on what it finds

use kohort_model::{Progress, Silent};
use rayon::prelude::*;

use super::base::Base;
use super::crowd::{Crowd, Draft};
use super::index::RowTree;
use super::mend;
use super::trim::trim;
use crate::encode::Rows;

/// This many plain classes are refined in parallel. The number does not depend on the machine, because the result
/// depends on it.
const SIDE_BY_SIDE: usize = 64;

/// Refines plain classes, given by their private rows. The group of each class is the position of its plain class.
pub(super) fn refine(
    crowd: &Crowd<'_>,
    plain: &[Vec<u32>],
    free: &mut RowTree<'_>,
    base: &Base<'_>,
    progress: &dyn Progress,
) -> Vec<Draft> {
    let whole = |group: usize| Draft { microdata: plain[group].clone(), group: group as u32, ..Draft::default() };
    let widths: Vec<f64> = (0..plain.len()).map(|group| crowd.width(&crowd.bounds(&whole(group)))).collect();
    let mut order: Vec<usize> = (0..plain.len()).collect();
    order.sort_by(|&a, &b| widths[a].total_cmp(&widths[b]));
    let mut drafts = Vec::new();
    progress.begin("refine", plain.len() as u64);
    for groups in order.chunks(SIDE_BY_SIDE) {
        let refined: Vec<Vec<Draft>> =
            groups.par_iter().map(|&group| refine_one(crowd, whole(group), free, base)).collect();
        for (&group, mut parts) in groups.iter().zip(refined) {
            if !parts.iter().flat_map(|draft| &draft.register).all(|&row| free.has(row)) {
                parts = refine_one(crowd, whole(group), free, base);
            }
            parts.iter().flat_map(|draft| &draft.register).for_each(|&row| free.take(row));
            drafts.append(&mut parts);
        }
        progress.advance(groups.len() as u64);
    }
    drafts
}

/// Refines one plain class with the register rows that are free in its box.
fn refine_one(crowd: &Crowd<'_>, mut all: Draft, free: &RowTree<'_>, base: &Base<'_>) -> Vec<Draft> {
    all.register = free.within(&crowd.hull(&crowd.bounds(&all)));
    let region = Region::new(crowd, &all);
    let mut parts = base
        .drafts(crowd, &region.rows, &Silent, |rows| region.draft(rows, all.group))
        .unwrap_or_else(|_| vec![all.clone()]);
    let short = mend::short(crowd, &parts);
    mend::join(crowd, &mut parts, short);
    // If even one class of all private rows has too few register persons, take everybody in the box, which may be
    // enough.
    if parts.iter().any(|part| !crowd.stands(part)) {
        parts = vec![all];
    }
    parts.iter_mut().for_each(|part| drop(trim(crowd, part)));
    parts
}

/// The private rows of a plain class and the register rows in its box, folded.
struct Region {
    rows: Rows,
    /// For each folded row of the region: the folded row of the crowd, its private rows, and whether its register
    /// persons are here.
    origins: Vec<Origin>,
}

struct Origin {
    folded: u32,
    private: Vec<u32>,
    register: bool,
}

impl Region {
    fn new(crowd: &Crowd<'_>, all: &Draft) -> Region {
        let private = all.microdata.iter().map(|&row| (crowd.folded(row), Some(row)));
        let mut found: Vec<(u32, Option<u32>)> = private.chain(all.register.iter().map(|&row| (row, None))).collect();
        found.sort_unstable();
        let origin = |same: &[(u32, Option<u32>)]| Origin {
            folded: same[0].0,
            private: same.iter().filter_map(|&(_, private)| private).collect(),
            register: same[0].1.is_none(),
        };
        let origins: Vec<Origin> = found.chunk_by(|a, b| a.0 == b.0).map(origin).collect();
        let members = |origin: &Origin| {
            let register: &[u32] = if origin.register { crowd.register_rows(origin.folded) } else { &[] };
            [origin.private.as_slice(), register].concat()
        };
        let rows = origins.iter().map(|origin| (crowd.rows.cells(origin.folded), members(origin)));
        Region { rows: Rows::given(crowd.rows.n_columns(), rows), origins }
    }

    fn draft(&self, rows: &[u32], group: u32) -> Draft {
        let origins = || rows.iter().map(|&row| &self.origins[row as usize]);
        Draft {
            microdata: origins().flat_map(|origin| &origin.private).copied().collect(),
            register: origins().filter(|origin| origin.register).map(|origin| origin.folded).collect(),
            group,
            ..Draft::default()
        }
    }
}
