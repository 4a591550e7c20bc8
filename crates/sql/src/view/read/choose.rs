//! [`LabelComparison`]: a condition on labels, and [`Labels`]: which classes or rows could satisfy it.
//!
//! Some comparisons are known when a query is planned. Others come while it runs: a join above a view tells which labels
//! its other side can meet. Both are asked of labels as the reader sees them, never of the values under them.
//!
//! [`ClassLabels::choose`](crate::view::class_labels::ClassLabels::choose) is the one place that chooses classes by
//! comparisons. [`answering_rows`] leaves out rows of chosen classes, because a class may be chosen for what it shows to
//! other readers.
//!
//! # Paper
//! `[EPS+12]` section 6: semi-join reduction, here of classes
//! # Cost
//! A condition on one column is evaluated once per distinct label, any other condition once per class or row.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use kohort_labels::meaning::CouldBe;
use kohort_model::{Block, BlockCells, NULL, Role, Texts};

use crate::view::Definition;

/// A condition on the labels of quasi columns.
#[derive(Clone)]
pub(crate) struct LabelComparison {
    condition: Condition,
    /// Bit `p` is set if the condition names the view's column at position `p`.
    pub(in crate::view) columns: u64,
}

#[derive(Clone)]
enum Condition {
    /// A [`CouldBe`] of one column. It needs no batch to be evaluated.
    Question(ScalarUDF),
    /// Any other condition, over the columns of [`quasi_schema`].
    Other(Arc<dyn PhysicalExpr>),
}

impl LabelComparison {
    /// A condition on columns found by their names; `None` if it names other columns than quasi columns, or none.
    pub(in crate::view) fn of(definition: &Definition, condition: &Arc<dyn PhysicalExpr>) -> Option<LabelComparison> {
        let mut columns = 0u64;
        for named in collect_columns(condition) {
            columns |= 1 << quasi_position(definition, named.name())?;
        }
        if columns == 0 {
            return None;
        }
        let condition = match question_in(condition) {
            Some(function) => Condition::Question(function),
            None => Condition::Other(reassign_expr_columns(Arc::clone(condition), &quasi_schema(definition)).ok()?),
        };
        Some(LabelComparison { condition, columns })
    }

    /// The same for a filter that was not planned; `None` unless the filter is one [`CouldBe`] of a quasi column.
    pub(crate) fn of_question(definition: &Definition, filter: &Expr) -> Option<LabelComparison> {
        let (Expr::ScalarFunction(call), (_, Expr::Column(column))) = (filter, CouldBe::in_expression(filter)?) else {
            return None;
        };
        let columns = 1 << quasi_position(definition, &column.name)?;
        Some(LabelComparison { condition: Condition::Question(call.func.as_ref().clone()), columns })
    }

    /// The question, if the condition is one.
    pub(in crate::view) fn question(&self) -> Option<&CouldBe> {
        match &self.condition {
            Condition::Question(function) => function.inner().downcast_ref::<CouldBe>(),
            Condition::Other(_) => None,
        }
    }

    /// The place, among the quasi columns, of the only column that the condition names; `None` if it names several.
    pub(in crate::view) fn only_column(&self, definition: &Definition) -> Option<usize> {
        let quasi = definition.with_role(Role::Quasi);
        let mut named = (0..).zip(quasi).filter(|(_, position)| self.columns >> position & 1 == 1);
        let (place, _) = named.next()?;
        named.next().is_none().then_some(place)
    }

    /// For each label of a quasi column, whether it satisfies the condition, and last whether a missing label does;
    /// `None` if that can't be computed.
    pub(in crate::view) fn of_labels(
        &self,
        definition: &Definition,
        quasi: usize,
        labels: &Texts,
    ) -> Result<Option<Vec<bool>>> {
        let with_null = || labels.iter().map(Some).chain([None]);
        if let Some(question) = self.question() {
            return Ok(with_null().map(|label| question.matches(label)).collect::<Result<_, _>>().ok());
        }
        let schema = quasi_schema(definition);
        let column = |place: usize| -> ArrayRef {
            match place == quasi {
                true => Arc::new(with_null().collect::<StringArray>()),
                false => new_null_array(&DataType::Utf8, labels.len() + 1),
            }
        };
        let columns = (0..schema.fields().len()).map(column).collect();
        self.evaluate(&RecordBatch::try_new(schema, columns)?)
    }

    fn evaluate(&self, labels: &RecordBatch) -> Result<Option<Vec<bool>>> {
        let Condition::Other(condition) = &self.condition else { return Ok(None) };
        let found = condition.evaluate(labels).and_then(|found| found.into_array(labels.num_rows()));
        let Ok(found) = found else { return Ok(None) };
        Ok(Some(as_boolean_array(&found)?.iter().map(|found| found == Some(true)).collect()))
    }
}

/// The [`CouldBe`] that a condition is, if its argument is a column.
fn question_in(condition: &Arc<dyn PhysicalExpr>) -> Option<ScalarUDF> {
    let call = condition.downcast_ref::<ScalarFunctionExpr>()?;
    call.fun().inner().downcast_ref::<CouldBe>()?;
    call.args().first()?.downcast_ref::<Column>()?;
    Some(call.fun().clone())
}

/// The position of the quasi column of this name.
pub(in crate::view) fn quasi_position(definition: &Definition, name: &str) -> Option<usize> {
    let position = definition.columns.iter().position(|column| column.name == name)?;
    (definition.columns[position].role == Role::Quasi).then_some(position)
}

/// The quasi columns as text, as comparisons see them.
pub(in crate::view) fn quasi_schema(definition: &Definition) -> SchemaRef {
    let field = |&position: &usize| Field::new(&definition.columns[position].name, DataType::Utf8, true);
    Schema::new(definition.with_role(Role::Quasi).iter().map(field).collect::<Vec<_>>()).into()
}

/// The labels of classes or rows: per quasi column the distinct labels, and per class or row a label's id or [`NULL`].
pub(in crate::view) struct Labels<'a>(pub(in crate::view) Vec<(&'a Texts, Cow<'a, [u32]>)>);

impl Labels<'_> {
    /// For each class or row, whether its labels satisfy a comparison; `None` if that can't be computed.
    pub(in crate::view) fn satisfying(
        &self,
        definition: &Definition,
        comparison: &LabelComparison,
    ) -> Result<Option<Vec<bool>>> {
        if let Some(quasi) = comparison.only_column(definition) {
            let (labels, ids) = &self.0[quasi];
            let found = comparison.of_labels(definition, quasi, labels)?;
            let place = |id: u32| if id == NULL { labels.len() } else { id as usize };
            return Ok(found.map(|found| ids.iter().map(|&id| found[place(id)]).collect()));
        }
        let column = |(labels, ids): &(&Texts, Cow<'_, [u32]>)| {
            let texts = ids.iter().map(|&id| (id != NULL).then(|| labels.get(id)));
            Arc::new(texts.collect::<StringArray>()) as ArrayRef
        };
        let columns = self.0.iter().map(column).collect();
        comparison.evaluate(&RecordBatch::try_new(quasi_schema(definition), columns)?)
    }
}

/// For each row of a block, whether its labels satisfy all comparisons; `None` if that can't be computed for one of
/// them.
pub(in crate::view) fn answering_rows(
    definition: &Definition,
    block: &Block,
    comparisons: &[LabelComparison],
) -> Result<Option<Vec<bool>>> {
    let column = |position: usize| match &block.columns[position] {
        BlockCells::Labels { labels, ids } => Some((labels, Cow::from(ids))),
        BlockCells::Own { .. } => None,
    };
    let columns = definition.with_role(Role::Quasi).into_iter().map(column).collect::<Option<_>>();
    let labels = Labels(columns.expect("quasi columns show labels"));
    let mut answers = vec![true; block.rows.len()];
    for comparison in comparisons {
        let Some(found) = labels.satisfying(definition, comparison)? else { return Ok(None) };
        answers.iter_mut().zip(found).for_each(|(answers, found)| *answers &= found);
    }
    Ok(Some(answers))
}
