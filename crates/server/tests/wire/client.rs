//! A client in Rust, which also collects notices.

use futures::{StreamExt, future, stream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::error::DbError;
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};

use crate::fixture::{PASSWORD, Served};

pub(crate) struct Connected {
    pub(crate) client: Client,
    notices: UnboundedReceiver<DbError>,
}

/// Logs in as this user.
pub(crate) async fn connect(served: &Served, user: &str) -> Connected {
    let url = format!("{} password='{PASSWORD}'", served.url(user));
    let (client, mut connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let (heard, notices) = unbounded_channel();
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    tokio::spawn(async move {
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notice(notice) = message {
                drop(heard.send(notice));
            }
        }
        future::ready(()).await;
    });
    Connected { client, notices }
}

impl Connected {
    /// The rows of the last statement as texts, or the notices if there are no rows.
    pub(crate) async fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
        let mut rows = Vec::new();
        let mut has_columns = false;
        for message in self.client.simple_query(sql).await? {
            match message {
                SimpleQueryMessage::RowDescription(_) => {
                    has_columns = true;
                    rows.clear();
                }
                SimpleQueryMessage::Row(row) => {
                    let cell = |column| row.get(column).map_or("NULL".to_owned(), str::to_owned);
                    rows.push((0..row.len()).map(cell).collect());
                }
                _ => {}
            }
        }
        while let Ok(notice) = self.notices.try_recv() {
            if !has_columns {
                let is_warning = notice.severity() == "WARNING";
                let said = format!("{}{}", if is_warning { "warning: " } else { "" }, notice.message());
                rows.extend(said.lines().map(|line| vec![line.to_owned()]));
            }
        }
        Ok(rows)
    }

    /// The SQLSTATE and message of a statement that must fail.
    pub(crate) async fn failure(&mut self, sql: &str) -> (String, String) {
        let error = self.rows(sql).await.expect_err(sql);
        let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error}"));
        (error.code().code().to_owned(), error.message().to_owned())
    }
}
