//! Sessions of DataFusion as the engine makes them: with the rules that A-views need, and a catalog of their own.

use std::sync::Arc;

use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList, MemorySchemaProvider,
    SchemaProvider,
};
use datafusion::execution::context::SessionContext;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerMode};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{TableScan, TableSource};
use datafusion::optimizer::Analyzer;
use datafusion::prelude::SessionConfig;
use kohort_labels::meaning::avlike;
use kohort_labels::rewrite::{
    FindPairs, JoinThroughPairs, KeepUnknown, Meanings, ProtectedColumns, RefuseRawComparisons, RewriteComparisons,
};

use super::limits::windows::MeterWindows;
use crate::exact::{CheckIntegers, exact_sum};
use crate::options::ViewOptions;
use crate::postgres::{POSTGRES, PostgresTables};
use crate::role::Role;
use crate::view::{AView, ShownLabels, Traced};

const CATALOG: &str = "kohort";
const SCHEMA: &str = "public";

/// A session whose analyzer knows A-views, with an empty catalog of its own.
pub(super) fn context(memory: Arc<dyn MemoryPool>, config: SessionConfig, role: Role) -> SessionContext {
    let mut config = config
        .with_information_schema(true)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false);
    // Views fetch rows by identifier, and Parquet files then decode no others.
    config.options_mut().execution.parquet.pushdown_filters = true;
    // DataFusion 55 plans `p IS TRUE` as an operator that it calls nullable, and then refuses aggregates over it, because the
    // logical plan says that it is never null. Both are right about the values, so the comparison of the two is left out.
    config.options_mut().execution.skip_physical_aggregate_schema_check = true;
    config.options_mut().extensions.insert(ViewOptions::default());
    let protected = ProtectedColumns::new(meanings_of);
    let mut analyzer = Analyzer::new().rules;
    analyzer.insert(0, Arc::new(RewriteComparisons::new(protected.clone())));
    analyzer.push(Arc::new(KeepUnknown));
    analyzer.push(Arc::new(RefuseRawComparisons::new(protected)));
    analyzer.push(Arc::new(CheckIntegers));
    let no_files = DiskManager::builder().with_mode(DiskManagerMode::Disabled);
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(memory).with_disk_manager_builder(no_files).build_arc();
    let mut state = SessionStateBuilder::new()
        .with_default_features()
        .with_runtime_env(runtime.expect("a runtime without files opens none"))
        .with_config(config)
        .with_catalog_list(catalogs_of(Arc::new(MemorySchemaProvider::new())))
        .with_table_factory(POSTGRES.to_owned(), Arc::new(PostgresTables))
        .with_analyzer_rules(analyzer)
        .with_optimizer_rule(Arc::new(JoinThroughPairs::new(labels)))
        .with_physical_optimizer_rule(Arc::new(FindPairs));
    // Analysts' windows run in worker processes, whose memory the system limits.
    if role == Role::Owner {
        state = state.with_physical_optimizer_rule(Arc::new(MeterWindows));
    }
    let context = SessionContext::new_with_state(state.build());
    context.register_udf(avlike());
    context.register_udaf(exact_sum());
    context
}

/// The catalog with its one schema.
pub(super) fn catalogs_of(schema: Arc<dyn SchemaProvider>) -> Arc<dyn CatalogProviderList> {
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(SCHEMA, schema).expect("catalogs in memory take any schema");
    let catalogs = MemoryCatalogProviderList::new();
    catalogs.register_catalog(CATALOG.to_owned(), Arc::new(catalog));
    Arc::new(catalogs)
}

/// The names of all tables and views.
pub(super) fn table_names(context: &SessionContext) -> Vec<String> {
    let mut names = Vec::new();
    for catalog in context.catalog_names().iter().filter_map(|name| context.catalog(name)) {
        for schema in catalog.schema_names().iter().filter_map(|name| catalog.schema(name)) {
            names.extend(schema.table_names());
        }
    }
    names
}

/// What the labels of a scanned view can stand for.
pub(super) fn meanings_of(scan: &TableScan) -> Option<Meanings> {
    let provider = source_as_provider(&scan.source).ok()?;
    let of_view = provider.downcast_ref::<AView>().map(AView::meanings);
    of_view.or_else(|| provider.downcast_ref::<Traced>().map(Traced::meanings))
}

/// The labels that a scanned view can show in a column.
fn labels(scan: &TableScan, column: usize) -> Option<Arc<dyn TableSource>> {
    let labels = ShownLabels::of(source_as_provider(&scan.source).ok()?, column)?;
    Some(provider_as_source(Arc::new(labels)))
}
