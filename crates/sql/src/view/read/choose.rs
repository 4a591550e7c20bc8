//! Which classes a reader needs: those whose labels could satisfy what is asked of quasi columns.
//!
//! What is asked is known when a query is planned, or only while it runs: a join above a view tells which labels its
//! other side can meet. Either way labels are asked as the reader sees them, never the values under them, and whole
//! classes are taken or left.
//!
//! # Guarantee
//! A class that is left out shows no row that satisfies all that is asked. The classes themselves stay what they are.
//! # Paper
//! `[EPS+12]` section 6: semi-join reduction, here of classes
//! # Cost
//! per condition its distinct labels; all classes only where it speaks of several columns

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, new_null_array};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use kohort_model::{NULL, Role, Texts};

use super::assemble::Chosen;
use crate::view::{Definition, Directory, Reader, Version};

/// A comparison of quasi columns as text.
#[derive(Clone)]
pub(in crate::view) struct Comparison {
    pub(in crate::view) condition: Arc<dyn PhysicalExpr>,
    /// The columns it speaks of, bit by bit.
    pub(in crate::view) columns: u64,
}

impl Comparison {
    /// A condition on columns found by their names; `None` where it speaks of others than quasi columns, or of none.
    pub(in crate::view) fn of(definition: &Definition, condition: &Arc<dyn PhysicalExpr>) -> Option<Comparison> {
        let mut columns = 0u64;
        for named in collect_columns(condition) {
            let position = definition.columns.iter().position(|column| column.name == named.name())?;
            if definition.columns[position].role != Role::Quasi {
                return None;
            }
            columns |= 1 << position;
        }
        let condition = reassign_expr_columns(Arc::clone(condition), &quasi_schema(definition)).ok()?;
        (columns != 0).then_some(Comparison { condition, columns })
    }

    /// The rows of a batch that satisfy it. All of them where that can't be told: whoever asks applies it again, and
    /// fails with a message of their own.
    pub(in crate::view) fn filter(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let Ok(condition) = reassign_expr_columns(Arc::clone(&self.condition), &batch.schema()) else {
            return Ok(batch);
        };
        let found = condition.evaluate(&batch).and_then(|found| found.into_array(batch.num_rows()));
        match found {
            Ok(found) => Ok(filter_record_batch(&batch, as_boolean_array(&found)?)?),
            Err(_) => Ok(batch),
        }
    }
}

/// Labels of classes, whatever keeps them.
pub(in crate::view) trait ClassLabels {
    /// Positions of the quasi columns in the view.
    fn quasi(&self) -> &[usize];
    /// The distinct labels of a quasi column.
    fn labels(&self, quasi: usize) -> &Texts;
    /// Per class a label's id in a quasi column, or [`NULL`].
    fn label_ids(&self, quasi: usize) -> &[u32];
}

impl ClassLabels for Directory {
    fn quasi(&self) -> &[usize] {
        self.quasi()
    }

    fn labels(&self, quasi: usize) -> &Texts {
        self.labels(quasi)
    }

    fn label_ids(&self, quasi: usize) -> &[u32] {
        self.label_ids(quasi)
    }
}

/// The quasi columns as text, as comparisons see them.
pub(in crate::view) fn quasi_schema(definition: &Definition) -> SchemaRef {
    let field = |&position: &usize| Field::new(&definition.columns[position].name, DataType::Utf8, true);
    Schema::new(definition.with_role(Role::Quasi).iter().map(field).collect::<Vec<_>>()).into()
}

impl Version {
    /// The classes whose labels satisfy all comparisons, or that somebody's refusal may make satisfy them.
    pub(in crate::view) fn choose(&self, reader: Reader, comparisons: &[Comparison]) -> Result<Chosen> {
        if comparisons.is_empty() {
            return Ok(Chosen::All);
        }
        let directory = self.directory(reader.pair);
        let refusals = self.refusals(reader);
        let mut answers = vec![true; directory.n_classes()];
        for comparison in comparisons {
            // A condition that fails on some label fails again, with its own message, on what leaves.
            let Some(found) = satisfying(&self.definition, directory, comparison)? else { continue };
            for ((answer, found), refused) in answers.iter_mut().zip(found).zip(refusals.iter()) {
                *answer &= found || refused & comparison.columns != 0;
            }
        }
        if answers.iter().all(|&answers| answers) {
            return Ok(Chosen::All);
        }
        let classes = (0..).zip(answers).filter(|&(_, answers)| answers).map(|(class, _)| class).collect();
        Ok(Chosen::Classes(classes))
    }
}

/// Per class whether its labels satisfy a comparison; `None` where that can't be computed. There are far fewer labels of
/// one column than classes.
pub(in crate::view) fn satisfying(
    definition: &Definition,
    classes: &impl ClassLabels,
    comparison: &Comparison,
) -> Result<Option<Vec<bool>>> {
    let evaluate = |labels: &RecordBatch| -> Result<Option<Vec<bool>>> {
        let found = comparison.condition.evaluate(labels).and_then(|found| found.into_array(labels.num_rows()));
        let Ok(found) = found else { return Ok(None) };
        Ok(Some(as_boolean_array(&found)?.iter().map(|found| found == Some(true)).collect()))
    };
    let schema = quasi_schema(definition);
    let is_asked = |&(_, &position): &(usize, &usize)| comparison.columns >> position & 1 == 1;
    let asked = classes.quasi().iter().enumerate().filter(is_asked);
    match asked.map(|(quasi, _)| quasi).collect::<Vec<usize>>()[..] {
        [quasi] => {
            let found = evaluate(&one_column(classes, quasi, schema)?)?;
            let n_labels = classes.labels(quasi).len();
            let of_class = |&id: &u32| if id == NULL { n_labels } else { id as usize };
            Ok(found.map(|found| classes.label_ids(quasi).iter().map(|id| found[of_class(id)]).collect()))
        }
        _ => evaluate(&label_batch(classes, schema)?),
    }
}

/// The distinct labels of one quasi column and, last, a null; nothing in the others.
fn one_column(directory: &impl ClassLabels, quasi: usize, schema: SchemaRef) -> Result<RecordBatch> {
    let labels = directory.labels(quasi);
    let column = |other: usize| -> ArrayRef {
        if other == quasi {
            Arc::new(labels.iter().map(Some).chain([None]).collect::<StringArray>())
        } else {
            new_null_array(&DataType::Utf8, labels.len() + 1)
        }
    };
    Ok(RecordBatch::try_new(schema, (0..directory.quasi().len()).map(column).collect())?)
}

/// The labels of all classes, one row each.
fn label_batch(directory: &impl ClassLabels, schema: SchemaRef) -> Result<RecordBatch> {
    let column = |quasi: usize| {
        let texts = directory.labels(quasi);
        let labels = directory.label_ids(quasi).iter().map(|&id| (id != NULL).then(|| texts.get(id)));
        Arc::new(labels.collect::<StringArray>()) as _
    };
    Ok(RecordBatch::try_new(schema, (0..directory.quasi().len()).map(column).collect())?)
}
