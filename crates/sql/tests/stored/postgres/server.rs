//! A PostgreSQL server for tests, in a temporary folder.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// The password of the one user, `ann`.
pub(crate) const PASSWORD: &str = "correct horse";

/// A server that runs until it is dropped.
pub(crate) struct Server {
    folder: TempDir,
    port: u16,
}

impl Server {
    /// The server that other tests are using, or a new one.
    pub(crate) fn running() -> Arc<Server> {
        static RUNNING: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Server::start());
            *running = Arc::downgrade(&server);
            server
        })
    }

    fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let (data, passwords) = (folder.path().join("data"), folder.path().join("password"));
        std::fs::write(&passwords, PASSWORD).unwrap();
        make_certificate(folder.path());
        write_private(&folder.path().join("pgpass"), &format!("*:*:*:ann:{PASSWORD}\n"));
        if is_root() {
            run(Command::new("chown").arg("-R").arg("postgres").arg(folder.path()));
        }
        let mut initdb = as_postgres("initdb");
        initdb.arg("-D").arg(&data).args(["--username=ann", "--auth=scram-sha-256", "--encoding=UTF8", "--no-sync"]);
        run(initdb.arg("--locale=C").arg("--pwfile").arg(&passwords));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let home = folder.path().display();
        let options = format!(
            "-k {home} -p {port} -c listen_addresses=127.0.0.1 -c fsync=off -c ssl=on \
             -c ssl_cert_file={home}/server.crt -c ssl_key_file={home}/server.key"
        );
        let mut start = as_postgres("pg_ctl");
        start.args(["start", "--wait", "-D"]).arg(&data).arg("-l").arg(folder.path().join("log"));
        // The server process would hold the pipes open.
        let status = start.arg("-o").arg(options).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.unwrap().success(), "PostgreSQL does not start");
        Server { folder, port }
    }

    /// The address of a database.
    pub(crate) fn location(&self, database: &str) -> String {
        format!("postgres://ann@localhost:{}/{database}", self.port)
    }

    /// The certificate of the server's authority.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.crt")
    }

    /// A new database, made by statements.
    pub(crate) async fn database(&self, name: &str, made_by: &str) -> Database {
        self.database_in(name, "UTF8", made_by).await
    }

    /// A new database with this encoding.
    pub(crate) async fn database_in(&self, name: &str, encoding: &str, made_by: &str) -> Database {
        let client = self.connect("postgres").await;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
        client
            .batch_execute(&format!("CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0"))
            .await
            .unwrap();
        let client = self.connect(name).await;
        client.batch_execute(made_by).await.unwrap();
        Database { client, location: self.location(name), passfile: self.folder.path().join("pgpass") }
    }

    async fn connect(&self, database: &str) -> Client {
        let mut config: tokio_postgres::Config = self.location(database).parse().unwrap();
        config.password(PASSWORD).ssl_mode(tokio_postgres::config::SslMode::Disable);
        let (client, connection) = config.connect(NoTls).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut stop = as_postgres("pg_ctl");
        run(stop.args(["stop", "--mode=immediate", "-D"]).arg(self.folder.path().join("data")));
    }
}

/// A database of the server.
pub(crate) struct Database {
    /// A connection that changes the database.
    pub(crate) client: Client,
    pub(crate) location: String,
    passfile: PathBuf,
}

impl Database {
    /// A statement that makes a table of this engine from a table of the database.
    pub(crate) fn external(&self, table: &str) -> String {
        let (location, passfile) = (&self.location, self.passfile.display());
        format!(
            "CREATE EXTERNAL TABLE {table} STORED AS POSTGRES LOCATION '{location}' OPTIONS (passfile '{passfile}');"
        )
    }
}

/// Writes a file that only its owner may read.
pub(crate) fn write_private(file: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn make_certificate(folder: &Path) {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    let (key, certificate) = (folder.join("server.key"), folder.join("server.crt"));
    run(openssl.arg("-keyout").arg(&key).arg("-out").arg(certificate));
    write_private(&key, &std::fs::read_to_string(&key).unwrap());
}

/// A program of PostgreSQL, as another user if this is root, because PostgreSQL refuses to run as root.
fn as_postgres(program: &str) -> Command {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin").join(program)).collect();
    found.retain(|file| file.is_file());
    found.sort();
    let program = found.pop().expect("these tests need PostgreSQL: apt-get install postgresql");
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
