//! Classes in which too few persons count take the register persons nearest to them, or join the nearest class. If that
//! is not enough, their cells are widened to the places where the register describes their private persons.
//!
//! # Guarantee
//! Every class satisfies the rules, or one class holds everybody and covers everything that is said about them.
//! # Cost
//! a search in the index per register row taken; a look at all classes per class that joins another, which happens only
//! if no free register person is left

use rayon::prelude::*;

use super::crowd::{Crowd, Draft};
use super::index::RowTree;
use super::trim::trim;
use crate::encode::bounds::{self, Bounds, include};

/// Makes every class satisfy the rules. `free` are the register rows in no class.
pub(super) fn mend<'a>(crowd: &'a Crowd<'a>, drafts: &mut Vec<Draft>, free: impl FnOnce(&[Draft]) -> RowTree<'a>) {
    let mut short = short(crowd, drafts);
    if short.is_empty() {
        return;
    }
    let mut free = free(drafts);
    for &class in &short {
        let draft = &mut drafts[class];
        if crowd.needed(draft) > crowd.rows.n_members() as u64 {
            continue;
        }
        let mut bounds = crowd.bounds(draft);
        while !crowd.stands(draft) {
            let Some(row) = free.nearest(&bounds) else { break };
            free.take(row);
            include(&mut bounds, crowd.rows.cells(row));
            draft.register.push(row);
        }
        trim(crowd, draft).into_iter().for_each(|row| free.give_back(row));
    }
    short.retain(|&class| !crowd.stands(&drafts[class]));
    join(crowd, drafts, short);
    // A person whom the register describes elsewhere counts only in a box that contains that place too. More rows would
    // not help, so widen the box.
    drafts.par_iter_mut().filter(|draft| !crowd.stands(draft)).for_each(|draft| crowd.reach_registered(draft));
}

/// Joins each class that does not satisfy the rules to the nearest class, as long as there is another. Classes that
/// join form one class.
pub(super) fn join(crowd: &Crowd<'_>, drafts: &mut Vec<Draft>, mut short: Vec<usize>) {
    if short.is_empty() {
        return;
    }
    let mut boxes: Vec<Bounds> = drafts.par_iter().map(|draft| crowd.bounds(draft)).collect();
    while let Some(class) = short.pop() {
        if drafts[class].microdata.is_empty() || crowd.stands(&drafts[class]) {
            continue;
        }
        let Some(nearest) = nearest(crowd, drafts, &boxes, class) else { break };
        let joining_box = std::mem::take(&mut boxes[class]);
        bounds::unite(&mut boxes[nearest], &joining_box);
        let mut joining = std::mem::take(&mut drafts[class]);
        let into = &mut drafts[nearest];
        into.microdata.append(&mut joining.microdata);
        into.register.append(&mut joining.register);
        let group = into.group;
        drafts.iter_mut().filter(|draft| draft.group == joining.group).for_each(|draft| draft.group = group);
        short.push(nearest);
    }
    drafts.retain(|draft| !draft.microdata.is_empty());
}

/// The class that can be joined at least cost; the first of equals.
fn nearest(crowd: &Crowd<'_>, drafts: &[Draft], boxes: &[Bounds], joining: usize) -> Option<usize> {
    let n_joining = drafts[joining].microdata.len() as f64;
    let cost = |class: usize| {
        let n_other = drafts[class].microdata.len() as f64;
        let united = bounds::width_of_both(crowd.domains(), &boxes[joining], &boxes[class]);
        united * (n_joining + n_other) - crowd.width(&boxes[class]) * n_other
    };
    let others = (0..drafts.len()).into_par_iter();
    let others = others.filter(|&class| class != joining && !drafts[class].microdata.is_empty());
    let costs = others.map(|class| (cost(class), class));
    costs.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, class)| class)
}

/// The classes that don't satisfy the rules.
pub(super) fn short(crowd: &Crowd<'_>, drafts: &[Draft]) -> Vec<usize> {
    (0..drafts.len()).into_par_iter().filter(|&class| !crowd.stands(&drafts[class])).collect()
}
