//! [`GrantedViews`]: the schema of one login. It holds the views that are granted at the moment of the question.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;

use crate::access::Login;
use crate::engine::Shared;
use crate::engine::context::catalogs_of;

/// The views that a login may read.
pub(crate) struct GrantedViews {
    shared: Arc<Shared>,
    login: Login,
}

impl GrantedViews {
    /// Catalogs that hold the views of a login.
    pub(crate) fn catalogs(shared: Arc<Shared>, login: &Login) -> Arc<dyn CatalogProviderList> {
        catalogs_of(Arc::new(GrantedViews { shared, login: login.clone() }))
    }

    fn is_granted(&self, name: &str) -> bool {
        self.shared.accounts.get().is_some_and(|accounts| accounts.may_read(&self.login, name))
    }
}

impl fmt::Debug for GrantedViews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrantedViews({})", &*self.login)
    }
}

#[async_trait]
impl SchemaProvider for GrantedViews {
    fn table_names(&self) -> Vec<String> {
        let granted = self.shared.accounts.get().map(|accounts| accounts.views(&self.login)).unwrap_or_default();
        granted.into_iter().filter(|name| self.table_exist(name)).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let view = if self.is_granted(name) { self.shared.view(name) } else { None };
        Ok(view.map(|view| view as Arc<dyn TableProvider>))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.is_granted(name) && self.shared.view(name).is_some()
    }
}
