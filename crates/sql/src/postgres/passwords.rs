//! Finds passwords where PostgreSQL's own programs look for them. They are looked up for each connection and never
//! stored.

use std::path::{Path, PathBuf};

use super::PostgresError;

/// A user of a database on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PostgresLogin {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) database: String,
    pub(super) user: String,
}

impl PostgresLogin {
    /// The server as shown in messages.
    pub(super) fn server(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The password; `None` if there is none. A named file must exist.
    ///
    /// # Errors
    /// If a file can't be read, or users other than its owner may read it.
    pub(super) fn password(&self, passfile: Option<&Path>) -> Result<Option<String>, PostgresError> {
        if let Some(file) = passfile {
            return Ok(self.find_in(&read(file)?));
        }
        if let Ok(password) = std::env::var("PGPASSWORD") {
            return Ok(Some(password));
        }
        let by_name = std::env::var_os("PGPASSFILE").map(PathBuf::from);
        let at_home = || std::env::home_dir().map(|home| home.join(".pgpass")).filter(|file| file.exists());
        match by_name.or_else(at_home) {
            Some(file) => Ok(self.find_in(&read(&file)?)),
            None => Ok(None),
        }
    }

    /// Finds the first line for this login. A line is `host:port:database:user:password`, and each of the first four
    /// fields can be `*`.
    fn find_in(&self, lines: &str) -> Option<String> {
        let port = self.port.to_string();
        let wanted = [&self.host, &port, &self.database, &self.user];
        lines.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let fields = fields(line);
            let [said @ .., password] = fields.as_slice() else { return None };
            let fits = said.len() == wanted.len()
                && said.iter().zip(wanted).all(|(said, wanted)| said == "*" || said == wanted);
            fits.then(|| password.clone())
        })
    }
}

/// The fields of a line. A backslash escapes the next character.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => field.extend(characters.next()),
            // The password is the rest of the line.
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

fn read(file: &Path) -> Result<String, PostgresError> {
    let fault = |fault| PostgresError::File { file: file.to_owned(), fault };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::metadata(file).map_err(|_| fault("it can't be read"))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(fault("users other than its owner may read the passwords in it: run chmod 600"));
        }
    }
    std::fs::read_to_string(file).map_err(|_| fault("it can't be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(user: &str) -> PostgresLogin {
        PostgresLogin { host: "db".to_owned(), port: 5432, database: "clinic".to_owned(), user: user.to_owned() }
    }

    #[test]
    fn the_first_line_that_fits_gives_the_password() {
        let lines = "# host:port:database:user:password\n\
                     other:*:*:ann:no\n*:*:*:ann:sec\\:ret:\\\\1\ndb:5432:clinic:bob:other\n*:*:*:bob:late\nshort:line\n";
        assert_eq!(login("ann").find_in(lines).as_deref(), Some("sec:ret:\\1"));
        assert_eq!(login("bob").find_in(lines).as_deref(), Some("other"));
        assert_eq!(login("eve").find_in(lines), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        std::fs::write(&file, "*:*:*:*:secret\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(login("ann").password(Some(&file)).is_err());
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(login("ann").password(Some(&file)).unwrap().as_deref(), Some("secret"));
        assert!(login("ann").password(Some(&folder.path().join("nowhere"))).is_err());
    }
}
