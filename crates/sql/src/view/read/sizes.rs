//! [`ViewRead::labels_of_classes`]: what a query sees that wants nothing but labels, from the class directory.
//!
//! `count(*)`, DISTINCT and GROUP BY of quasi columns need the labels and sizes of classes. Both were verified when the version was made, so
//! no private row is fetched, and none is verified again.
//!
//! # Guarantee
//! The rows that the other way gives, in the same order. Queries that this file can't answer in that way take the other one: those
//! that want other columns, views with ANSWERS MATCHING, refusals that hide cells of single rows, and versions that don't keep
//! their rows, whose tables may have changed unnoticed.
//! # Cost
//! One sort of the classes and one text per row and column that is wanted; none for `count(*)`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringBuilder};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use kohort_model::{Disclosure, NULL, Role, Texts};

use super::assemble::Chosen;
use super::choose::Labels;
use super::exec::ViewRead;
use super::plan::Plan;
use super::source::Source;

impl ViewRead {
    /// Whether the class directory answers a query for these columns.
    pub(in crate::view) fn needs_no_rows(&self, positions: &[usize]) -> bool {
        let definition = &self.version.definition;
        matches!((&self.plan, &self.source), (Plan::SelectFirst { .. }, Source::Kept))
            && positions.iter().all(|&position| definition.columns[position].role == Role::Quasi)
            && definition.clauses.disclosure == Disclosure::Class
            && !self.version.answers_matching()
            && !self.hides_cells_of_some()
    }

    /// Whether somebody who is in no class refuses something.
    fn hides_cells_of_some(&self) -> bool {
        let (directory, refusals) = (self.version.directory(self.reader.pair), self.version.refusals(self.reader));
        (0..).zip(refusals.iter()).any(|(class, columns)| *columns != 0 && directory.class(class).is_alone)
    }

    /// The labels of classes, once per row of each class that satisfies the comparisons.
    pub(in crate::view) fn labels_of_classes(
        &self,
        piece: &Chosen,
        positions: &[usize],
        schema: SchemaRef,
    ) -> Result<RecordBatch> {
        let directory = self.version.directory(self.reader.pair);
        let classes: Vec<u32> = match piece {
            Chosen::All => (0..directory.n_classes() as u32).collect(),
            Chosen::Classes(classes) => classes.clone(),
        };
        let shown = self.shown(&classes);
        let mut answers = vec![true; classes.len()];
        let labels = Labels(shown.iter().map(|(labels, ids)| (labels, Cow::from(ids))).collect());
        for comparison in &self.comparisons {
            // If a comparison can't be evaluated, the filter above fails too, with its own message.
            let Some(found) = labels.satisfying(&self.version.definition, comparison)? else {
                answers.fill(true);
                break;
            };
            answers.iter_mut().zip(found).for_each(|(answers, found)| *answers &= found);
        }
        let mut places: Vec<usize> = (0..classes.len()).filter(|&place| answers[place]).collect();
        let label = |quasi: usize, place: usize| {
            let (labels, ids) = &shown[quasi];
            (ids[place] != NULL).then(|| labels.get(ids[place]))
        };
        // Missing labels come last.
        let key = |place: usize| {
            (0..shown.len()).map(move |quasi| label(quasi, place).map_or((true, ""), |text| (false, text)))
        };
        places.sort_by(|&a, &b| key(a).cmp(key(b)));

        let n_rows = |place: usize| directory.class(classes[place]).n_rows as usize;
        let all_rows = places.iter().map(|&place| n_rows(place)).sum();
        let of_classes = directory.labels();
        let column = |position: &usize| -> ArrayRef {
            let quasi = of_classes.quasi().iter().position(|quasi| quasi == position).expect("it is a quasi column");
            let mut texts = StringBuilder::with_capacity(all_rows, 8 * all_rows);
            for &place in &places {
                (0..n_rows(place)).for_each(|_| texts.append_option(label(quasi, place)));
            }
            Arc::new(texts.finish())
        };
        let options = RecordBatchOptions::new().with_row_count(Some(all_rows));
        Ok(RecordBatch::try_new_with_options(schema, positions.iter().map(column).collect(), &options)?)
    }

    /// What classes show in each quasi column: the distinct labels, and per class a label's id or [`NULL`].
    fn shown(&self, classes: &[u32]) -> Vec<(Texts, Vec<u32>)> {
        let (directory, refusals) = (self.version.directory(self.reader.pair), self.version.refusals(self.reader));
        let of_classes = directory.labels();
        let column = |(quasi, &position): (usize, &usize)| {
            let everything = self.version.everything(position);
            let (mut labels, mut known) = (Texts::new(), HashMap::new());
            let id = |&class: &u32| {
                let is_refused = refusals[class as usize] >> position & 1 == 1;
                let label = if is_refused { Some(everything) } else { of_classes.label(quasi, class) };
                label.map_or(NULL, |label| *known.entry(label).or_insert_with(|| labels.push(label)))
            };
            let ids = classes.iter().map(id).collect();
            (labels, ids)
        };
        of_classes.quasi().iter().enumerate().map(column).collect()
    }
}
