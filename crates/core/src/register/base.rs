//! [`Base`]: the partitioner of the spec, on joined rows.
//!
//! # Deviations
//! `auto` makes all joined rows lose little, of which private rows are few, and takes long. So Mondrian is always asked
//! beside it, and it alone where there are many rows; whichever makes private rows lose less is taken

use kohort_model::Progress;
use kohort_model::spec::{Algorithm, Leftovers, Spec};
use rayon::prelude::*;

use super::crowd::{Crowd, Draft};
use super::trim::trim;
use crate::encode::Rows;
use crate::partition::{KeepTree, Mondrian, Partitioner, Task, Unreachable};
use crate::requirement::Rules;

/// On more folded rows `auto` is not asked.
const FEW_ROWS: usize = 1 << 11;

/// The partitioner of the spec, on joined rows.
pub(super) struct Base<'a> {
    /// As the spec says.
    pub(super) partitioner: &'a dyn Partitioner,
    /// What is asked beside it.
    quick: Option<Mondrian>,
}

impl<'a> Base<'a> {
    pub(super) fn new(partitioner: &'a dyn Partitioner, spec: &Spec) -> Base<'a> {
        let quick = Mondrian { spec: spec.mondrian, keep_tree: KeepTree::No };
        Base { partitioner, quick: (spec.algorithm == Algorithm::Auto).then_some(quick) }
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
        let by = |partitioner: &dyn Partitioner| drafts_by(partitioner, crowd, rows, progress, &draft);
        let Some(quick) = &self.quick else { return by(self.partitioner) };
        let quick = by(quick)?;
        if rows.len() > FEW_ROWS {
            return Ok(quick);
        }
        let thorough = by(self.partitioner)?;
        Ok(if crowd.loss(&thorough) < crowd.loss(&quick) { thorough } else { quick })
    }
}

fn drafts_by(
    partitioner: &dyn Partitioner,
    crowd: &Crowd<'_>,
    rows: &Rows,
    progress: &dyn Progress,
    draft: &(impl Fn(&[u32]) -> Draft + Sync),
) -> Result<Vec<Draft>, Unreachable> {
    let rules = Rules::k_only(crowd.k());
    let domains = crowd.domains();
    let task = Task { rows, domains, rules: &rules, allowance: 0, leftovers: Leftovers::Merge, progress };
    let classes = partitioner.partition(&task)?;
    let finish = |class: usize| {
        let mut draft = draft(classes.rows(class));
        (!draft.microdata.is_empty()).then(|| {
            trim(crowd, &mut draft);
            draft
        })
    };
    Ok((0..classes.len()).into_par_iter().filter_map(finish).collect())
}
