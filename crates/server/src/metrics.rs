//! [`Metrics`]: numbers for Prometheus, over HTTP on an address of their own. They contain no name and no statement.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The metrics.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Accepted connections.
    pub connections: Count,
    /// Open connections.
    pub open: Count,
    /// Connections refused because there were too many.
    pub refused: Count,
    /// Logins that succeeded.
    pub logins: Count,
    /// Logins that failed.
    pub failed_logins: Count,
    /// Running statements.
    pub running: Count,
    /// Open cursors.
    pub cursors: Count,
    /// Answered statements.
    pub answered: Count,
    /// Failed statements.
    pub failed: Count,
    /// Statements that were cancelled or took too long.
    pub cancelled: Count,
    /// Sent rows.
    pub rows: Count,
}

/// A counter.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds a number.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Subtracts one.
    pub fn less(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metrics {
    /// The metrics in Prometheus's text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, samples: &[(&str, &Count)]| {
            let _ = writeln!(text, "# HELP kohort_{name} {help}\n# TYPE kohort_{name} {kind}");
            for (label, count) in samples {
                let _ = writeln!(text, "kohort_{name}{label} {}", count.get());
            }
        };
        metric("connections_total", "counter", "Connections made.", &[("", &self.connections)]);
        metric("connections_open", "gauge", "Connections open.", &[("", &self.open)]);
        metric("connections_refused_total", "counter", "Connections over the limit.", &[("", &self.refused)]);
        let logins = [("{outcome=\"done\"}", &self.logins), ("{outcome=\"failed\"}", &self.failed_logins)];
        metric("logins_total", "counter", "Logins.", &logins);
        let statements = [
            ("{outcome=\"answered\"}", &self.answered),
            ("{outcome=\"failed\"}", &self.failed),
            ("{outcome=\"cancelled\"}", &self.cancelled),
        ];
        metric("statements_total", "counter", "Statements.", &statements);
        metric("statements_running", "gauge", "Statements running.", &[("", &self.running)]);
        metric("cursors_open", "gauge", "Cursors open.", &[("", &self.cursors)]);
        metric("rows_sent_total", "counter", "Rows sent.", &[("", &self.rows)]);
        text
    }

    /// Answers requests for `/metrics` forever.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let metrics = Arc::clone(&self);
                    // Each request has a task of its own, so a client that does not read blocks nobody.
                    tokio::spawn(async move {
                        let _ = tokio::time::timeout(Duration::from_secs(5), metrics.answer(stream)).await;
                    });
                }
                // Probably too many files are open. Wait for others to be closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        const LONGEST_REQUEST: usize = 8192;
        let mut request = Vec::new();
        let is_whole = |request: &[u8]| request.windows(4).any(|end| end == b"\r\n\r\n");
        while !is_whole(&request) && request.len() < LONGEST_REQUEST {
            if stream.read_buf(&mut request).await? == 0 {
                break;
            }
        }
        let (status, body) = match request.split(|byte| *byte == b'\r').next() {
            Some(line) if line.starts_with(b"GET /metrics ") => ("200 OK", self.text()),
            _ => ("404 Not Found", String::new()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    }
}
