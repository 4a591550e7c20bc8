//! Replaces the cells of a column by pseudonyms, by the definition of [`kohort_model::Transform`], and has the verifier compute them
//! again.
//!
//! # Guarantee
//! The key is read from a file that nobody but its owner can read. It is in no message, and neither it nor its digest leaves this
//! module. No two values get the same pseudonym, and no value has two rows, because its pseudonym would link them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use kohort_model::{Column, NULL, PSEUDONYM_ALPHABET, PSEUDONYM_LENGTH, Texts, ValueType};
use kohort_verify::verify_pseudonyms;
use ring::hmac;

use super::error::{ReadError, RowNumbers};

/// A key shorter than this could be found by trying.
const LEAST_KEY: usize = 32;
/// A file longer than this is hardly a key.
const LARGEST_KEY: u64 = 1 << 16;

/// The column with pseudonyms in place of its values. `key_file` is the path of the key.
pub(super) fn pseudonymized(private: &Column, key_file: &Path) -> Result<Column, Vec<ReadError>> {
    let column = || private.name.clone();
    let mut is_met = vec![false; private.texts.len()];
    let is_repeated = |&id: &u32| id != NULL && std::mem::replace(&mut is_met[id as usize], true);
    let mut repeats = vec![false; private.texts.len()];
    private.ids.iter().copied().filter(is_repeated).for_each(|id| repeats[id as usize] = true);
    if repeats.contains(&true) {
        let rows = RowNumbers::with_ids(&private.ids, |id| id != NULL && repeats[id as usize]);
        return Err(vec![ReadError::PseudonymRepeats { column: column(), rows }]);
    }
    let bytes = read_key(key_file)
        .map_err(|why| vec![ReadError::PseudonymKey { column: column(), path: key_file.to_owned(), why }])?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
    let texts: Texts = private.texts.iter().map(|text| pseudonym(&key, text)).collect();
    let changed = Column { value_type: ValueType::Text, texts, ids: private.ids.clone(), ..private.without_cells() };
    match verify_pseudonyms(private, &changed, &bytes) {
        Ok(()) => Ok(changed),
        Err(violation) => Err(vec![ReadError::Transform { violation }]),
    }
}

/// Five bits of the code for each letter.
fn pseudonym(key: &hmac::Key, text: &str) -> String {
    let code = hmac::sign(key, text.as_bytes());
    let bits = |at: usize| -> usize {
        let pair = u16::from_be_bytes([code.as_ref()[at / 8], code.as_ref()[at / 8 + 1]]);
        usize::from(pair >> (11 - at % 8)) & 31
    };
    let alphabet: Vec<char> = PSEUDONYM_ALPHABET.chars().collect();
    (0..PSEUDONYM_LENGTH).map(|letter| alphabet[bits(5 * letter)]).collect()
}

/// What is wrong with a key file.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum KeyFault {
    /// It is not there, or can't be read.
    #[error("can't be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is a folder or a device.
    #[error("is not a file")]
    NoFile,
    /// Others can read it.
    #[error("others than its owner may use it")]
    Open,
    /// A key of a few letters can be found by trying.
    #[error("holds {n_bytes} bytes, but a key has at least {LEAST_KEY}")]
    Short { n_bytes: usize },
    /// It is no key.
    #[error("holds more than {LARGEST_KEY} bytes, so it is hardly a key")]
    Long,
}

impl KeyFault {
    /// What to do about it.
    pub(super) fn hint(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            KeyFault::Open => format!("close it: chmod 600 {path}"),
            KeyFault::Io(_) | KeyFault::NoFile | KeyFault::Short { .. } | KeyFault::Long => {
                format!("make one, and keep it secret: (umask 077; head -c 32 /dev/urandom > {path})")
            }
        }
    }
}

fn read_key(path: &Path) -> Result<Vec<u8>, KeyFault> {
    let file = File::open(path)?;
    // Of the open file, so that it can't be exchanged after the check.
    let known = file.metadata()?;
    if !known.is_file() {
        return Err(KeyFault::NoFile);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if known.permissions().mode() & 0o077 != 0 {
            return Err(KeyFault::Open);
        }
    }
    let mut key = Vec::new();
    file.take(LARGEST_KEY + 1).read_to_end(&mut key)?;
    match key.len() {
        n_bytes if n_bytes < LEAST_KEY => Err(KeyFault::Short { n_bytes }),
        n_bytes if n_bytes as u64 > LARGEST_KEY => Err(KeyFault::Long),
        _ => Ok(key),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use kohort_model::Role;

    use super::*;

    fn key_file(folder: &Path, bytes: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(format!("key-{}-{mode:o}", bytes.len()));
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn ids(cells: &[Option<&str>]) -> Column {
        Column::from_cells("id", Role::Plain, cells.iter().copied())
    }

    #[test]
    fn a_pseudonym_is_the_beginning_of_the_code() {
        let folder = tempfile::tempdir().unwrap();
        let key = key_file(folder.path(), &[7; 32], 0o600);
        let made = pseudonymized(&ids(&[Some("17"), None, Some("18")]), &key).unwrap();
        let cells: Vec<Option<&str>> = (0..3).map(|row| made.cell(row)).collect();
        // python3: base64.b32encode(hmac.new(bytes([7]) * 32, b'17', 'sha256').digest())[:16], in the alphabet of pseudonyms.
        assert_eq!(cells, [Some("m5v6b433j7kvp649"), None, Some("bbbf47a4qsicr7di")]);
    }

    #[test]
    fn keys_that_others_can_read_and_short_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| {
            let problems = pseudonymized(&ids(&[Some("17")]), path).unwrap_err();
            problems[0].to_string().replace(&format!("{}", path.display()), "KEY")
        };
        for mode in [0o640, 0o604, 0o620, 0o666, 0o610] {
            let key = key_file(folder.path(), &[7; 32], mode);
            assert_eq!(refused(&key), "column 'id': the key KEY: others than its owner may use it");
        }
        let short = key_file(folder.path(), &[7; 31], 0o600);
        assert_eq!(refused(&short), "column 'id': the key KEY: holds 31 bytes, but a key has at least 32");
        assert_eq!(refused(folder.path()), "column 'id': the key KEY: is not a file");
        assert!(refused(&folder.path().join("none")).starts_with("column 'id': the key KEY: can't be read"));
    }

    #[test]
    fn a_value_of_several_rows_has_no_pseudonym() {
        let folder = tempfile::tempdir().unwrap();
        let key = key_file(folder.path(), &[7; 32], 0o600);
        let problems = pseudonymized(&ids(&[Some("17"), Some("18"), None, None, Some("17")]), &key).unwrap_err();
        assert!(problems[0].to_string().contains("rows 1 and 5"), "{}", problems[0]);
    }
}
