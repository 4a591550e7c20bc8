//! [`Codec`]: encodes our own operators and functions in plans for workers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::not_impl_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::PhysicalExprNode;
use kohort_labels::meaning::Carried;
use kohort_labels::rewrite::{CarriedPairs, PairsExec};
use kohort_model::Hierarchy;
use parking_lot::{Mutex, MutexGuard};
use prost::Message;
use serde::{Deserialize, Serialize};

use super::frames::{arrow_bytes, from_json, joined, malformed, parts, schema_of, to_json};
use super::process::Functions;
use super::remote::{Leaf, Link, RemoteExec};

/// Encodes and decodes operators and functions that DataFusion does not know.
pub(super) struct Codec {
    /// The hierarchies. Functions refer to them by number.
    hierarchies: Mutex<Vec<Arc<Hierarchy>>>,
    /// The columns of the recursive queries that are being encoded.
    recursive: Mutex<HashMap<String, SchemaRef>>,
    /// The parts that only a worker has.
    worker: Option<(Arc<Link>, Functions)>,
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codec")
    }
}

/// One of our own operators.
#[derive(Serialize, Deserialize)]
enum Operator {
    Remote { number: usize, n_partitions: usize, shown: String },
    Pairs(Box<CarriedPairs>),
    Recursive { name: String, is_distinct: bool },
    WorkTable { name: String, projection: Vec<usize> },
}

impl Codec {
    /// A codec that encodes plans, or decodes expressions with DataFusion's own functions only.
    pub(super) fn plain() -> Codec {
        Codec { hierarchies: Mutex::default(), recursive: Mutex::default(), worker: None }
    }

    /// A codec that decodes plans in a worker.
    pub(super) fn of_worker(hierarchies: Vec<Arc<Hierarchy>>, link: Arc<Link>, functions: Functions) -> Codec {
        let hierarchies = Mutex::new(hierarchies);
        Codec { hierarchies, recursive: Mutex::default(), worker: Some((link, functions)) }
    }

    /// The hierarchies of the functions encoded so far.
    pub(super) fn hierarchies(&self) -> MutexGuard<'_, Vec<Arc<Hierarchy>>> {
        self.hierarchies.lock()
    }

    /// The columns of its query that a work table reads, found by name.
    fn projection(&self, table: &WorkTableExec) -> Result<(SchemaRef, Vec<usize>)> {
        let Some(all) = self.recursive.lock().get(table.name()).cloned() else { return Err(malformed()) };
        let mut projection = Vec::new();
        for field in table.schema().fields() {
            let mut places = all.fields().iter().enumerate().filter(|(_, known)| known.name() == field.name());
            match (places.next(), places.next()) {
                (Some((place, _)), None) => projection.push(place),
                _ => return not_impl_err!("a recursive query has two columns of the same name"),
            }
        }
        Ok((all, projection))
    }
}

impl PhysicalExtensionCodec for Codec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let mut rest = Vec::new();
        let operator = if let Some(remote) = node.downcast_ref::<RemoteExec>() {
            let Leaf { number, n_partitions, schema, shown } = remote.leaf.clone();
            rest.push(arrow_bytes(&schema, None)?);
            for condition in &remote.conditions {
                rest.push(converter.physical_expr_to_proto(condition, self)?.encode_to_vec());
            }
            Operator::Remote { number, n_partitions, shown }
        } else if let Some(pairs) = node.downcast_ref::<PairsExec>() {
            Operator::Pairs(Box::new(pairs.carried(&mut self.hierarchies()).ok_or_else(malformed)?))
        } else if let Some(query) = node.downcast_ref::<RecursiveQueryExec>() {
            self.recursive.lock().insert(query.name().to_owned(), query.schema());
            rest.push(arrow_bytes(&query.schema(), None)?);
            Operator::Recursive { name: query.name().to_owned(), is_distinct: query.is_distinct() }
        } else if let Some(table) = node.downcast_ref::<WorkTableExec>() {
            let (schema, projection) = self.projection(table)?;
            rest.push(arrow_bytes(&schema, None)?);
            Operator::WorkTable { name: table.name().to_owned(), projection }
        } else {
            return not_impl_err!("{} does not run in a worker", node.name());
        };
        rest.insert(0, to_json(&operator)?);
        *buf = joined(&rest);
        Ok(())
    }

    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let parts = parts(buf)?;
        let (operator, rest) = parts.split_first().ok_or_else(malformed)?;
        let schema = || schema_of(rest.first().ok_or_else(malformed)?);
        Ok(match (from_json(operator)?, inputs) {
            (Operator::Remote { number, n_partitions, shown }, []) => {
                let (schema, link) = (schema()?, self.worker.as_ref().map(|(link, _)| Arc::clone(link)));
                let decode = PhysicalPlanDecodeContext::new(context, self);
                let read = |bytes: &&[u8]| -> Result<Arc<dyn PhysicalExpr>> {
                    let condition = PhysicalExprNode::decode(*bytes).map_err(|_| malformed())?;
                    converter.proto_to_physical_expr(&condition, &schema, &decode)
                };
                let conditions = rest[1..].iter().map(read).collect::<Result<Vec<_>>>()?;
                let leaf = Leaf { number, n_partitions, schema: Arc::clone(&schema), shown };
                Arc::new(RemoteExec::new(leaf, conditions, link))
            }
            (Operator::Pairs(carried), [left, right]) => {
                let pairs = PairsExec::of(*carried, Arc::clone(left), Arc::clone(right), &self.hierarchies());
                Arc::new(pairs.ok_or_else(malformed)?)
            }
            (Operator::Recursive { name, is_distinct }, [first, next]) => {
                let (first, next) = (Arc::clone(first), Arc::clone(next));
                Arc::new(RecursiveQueryExec::try_new(name, schema()?, first, next, is_distinct)?)
            }
            (Operator::WorkTable { name, projection }, []) => {
                Arc::new(WorkTableExec::new(name, schema()?, Some(projection))?)
            }
            _ => return Err(malformed()),
        })
    }

    fn try_encode_udf(&self, function: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        // Other functions are found by name.
        if let Some(carried) = Carried::of(function, &mut self.hierarchies()) {
            *buf = to_json(&carried)?;
        }
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        if !buf.is_empty() {
            let carried: Carried = from_json(buf)?;
            return Ok(Arc::new(carried.function(&self.hierarchies()).ok_or_else(malformed)?));
        }
        let functions = self.worker.as_ref().map(|(_, functions)| functions);
        match functions.and_then(|functions| (functions.others)(name)) {
            Some(function) => Ok(function),
            None => not_impl_err!("a worker does not know the function {name}"),
        }
    }
}
