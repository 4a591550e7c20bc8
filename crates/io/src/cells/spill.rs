//! [`Spill`]: a folder for rows that don't fit into memory.
//!
//! # Guarantee
//! Whatever is on the disk is encrypted and authenticated with a key that exists only in memory (AES-256-GCM), so rows can't be
//! read after the process has ended, however it ended. Every frame has a nonce of its own, which one counter gives out for the
//! whole folder, and is bound to its file and its place in it. The folder is removed when the work is done or fails. A folder that
//! a killed process left behind is removed by the next job that writes beside it: a folder in use is locked.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use tempfile::TempDir;

use crate::WriteError;
use crate::write::private_folder;

const PREFIX: &str = ".kohort-cells-";
const LOCK: &str = "lock";
/// The ending of files with rows.
const ENDING: &str = "cell";
/// What stands before each frame: its length and its nonce.
const HEADER: usize = 16;

/// A folder of encrypted files, removed when dropped.
pub struct Spill {
    folder: TempDir,
    /// Held for as long as the folder is in use.
    _lock: File,
    key: LessSafeKey,
    next_file: AtomicU32,
    next_nonce: AtomicU64,
}

impl std::fmt::Debug for Spill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Spill").field(&self.folder.path()).finish()
    }
}

impl Spill {
    /// A new folder below `parent`, which should be on the file system of the release. Removes folders that killed processes
    /// left there. `n_bytes` is what all files may take together.
    ///
    /// # Errors
    /// If there is less space left, or nothing can be written there.
    pub fn below(parent: &Path, n_bytes: u64) -> Result<Spill, WriteError> {
        remove_abandoned(parent);
        if let Some(n_free) = free_bytes(parent).filter(|&n_free| n_free < n_bytes) {
            return Err(WriteError::NoSpace { path: parent.to_owned(), n_bytes, n_free });
        }
        let folder = private_folder(PREFIX, parent).map_err(WriteError::io(parent))?;
        let lock = locked(folder.path()).map_err(WriteError::io(parent))?;
        let mut key = [0; 32];
        let random = SystemRandom::new().fill(&mut key).map_err(|_| io::Error::other("no random numbers"));
        random.map_err(WriteError::io(parent))?;
        let key = UnboundKey::new(&AES_256_GCM, &key).map_err(|_| io::Error::other("no key can be made"));
        let key = LessSafeKey::new(key.map_err(WriteError::io(parent))?);
        Ok(Spill { folder, _lock: lock, key, next_file: AtomicU32::new(0), next_nonce: AtomicU64::new(0) })
    }

    /// A new file.
    pub(super) fn file(&self) -> SpillFile {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        SpillFile {
            path: self.folder.path().join(number.to_string()).with_extension(ENDING),
            number,
            n_frames: 0,
            n_rows: 0,
        }
    }

    /// The bytes that the files take on the disk.
    pub fn n_bytes(&self) -> u64 {
        let entries = fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    /// Appends rows of numbers to a file.
    pub(super) fn append(&self, file: &mut SpillFile, columns: Vec<Vec<u32>>) -> Result<(), WriteError> {
        let n_rows = columns.first().map_or(0, Vec::len);
        let frame = encode(columns, n_rows).map_err(|error| encode_error(&file.path, &error.to_string()))?;
        let sealed = self.seal(file.place(file.n_frames), frame).map_err(WriteError::io(&file.path))?;
        let write = || OpenOptions::new().create(true).append(true).open(&file.path)?.write_all(&sealed);
        write().map_err(WriteError::io(&file.path))?;
        file.n_frames += 1;
        file.n_rows += n_rows as u64;
        Ok(())
    }

    /// Reads a file, frame by frame.
    pub(super) fn read<'s>(&'s self, file: &'s SpillFile) -> SpillReader<'s> {
        SpillReader { spill: self, file, n_read: 0, at: 0 }
    }

    /// Deletes a file that is not needed any more.
    pub(super) fn remove(&self, file: &SpillFile) -> Result<(), WriteError> {
        match fs::remove_file(&file.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(WriteError::io(&file.path)(error)),
            _ => Ok(()),
        }
    }

    /// A frame as it is written: header, encrypted rows, tag.
    fn seal(&self, place: [u8; 12], mut plain: Vec<u8>) -> io::Result<Vec<u8>> {
        let number = self.next_nonce.fetch_add(1, Ordering::Relaxed);
        let tag = self.key.seal_in_place_separate_tag(nonce(number), Aad::from(place), &mut plain[HEADER..]);
        let tag = tag.map_err(|_| io::Error::other("rows can't be encrypted"))?;
        plain.extend_from_slice(tag.as_ref());
        let length = (plain.len() - HEADER) as u64;
        plain[..8].copy_from_slice(&length.to_le_bytes());
        plain[8..HEADER].copy_from_slice(&number.to_le_bytes());
        Ok(plain)
    }

    fn open(&self, place: [u8; 12], number: u64, sealed: &mut Vec<u8>) -> io::Result<()> {
        let opened = self.key.open_in_place(nonce(number), Aad::from(place), sealed);
        let n_plain = opened.map_err(|_| io::Error::other("temporary rows were changed on the disk"))?.len();
        sealed.truncate(n_plain);
        Ok(())
    }
}

/// Makes the lock of a folder. It gets its name only when it is held, so that nobody finds it free.
fn locked(folder: &Path) -> io::Result<File> {
    let unnamed = folder.join("new");
    let lock = File::create_new(&unnamed)?;
    lock.lock()?;
    fs::rename(&unnamed, folder.join(LOCK))?;
    Ok(lock)
}

/// The space that is left on a file system, if the system tells.
fn free_bytes(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    return rustix::fs::statvfs(path).ok().map(|found| found.f_bavail.saturating_mul(found.f_frsize));
    #[cfg(not(unix))]
    return None.filter(|_: &u64| path.exists());
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Removes folders whose lock nobody holds. A folder that can't be removed does no harm, because nobody has its key.
pub(crate) fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Rows are written only after the lock has its name. So a folder with rows and without a lock was being removed when its process
/// was killed, and one that is still empty may be about to be used.
fn is_abandoned(folder: &Path) -> bool {
    match File::open(folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.any(|entry| entry.path().extension().is_some_and(|extension| extension == ENDING))
        }
        Err(_) => false,
    }
}

/// A file of encrypted rows.
#[derive(Debug)]
pub(super) struct SpillFile {
    path: PathBuf,
    number: u32,
    n_frames: u64,
    pub(super) n_rows: u64,
}

impl SpillFile {
    /// What a frame is bound to: the number of the file, and that of the frame within it.
    fn place(&self, frame: u64) -> [u8; 12] {
        let mut place = [0; 12];
        place[..4].copy_from_slice(&self.number.to_le_bytes());
        place[4..].copy_from_slice(&frame.to_le_bytes());
        place
    }
}

/// Reads rows frame by frame. The file is open only while a frame is read, because a merge reads more files in turn than a process
/// may have open.
pub(super) struct SpillReader<'s> {
    spill: &'s Spill,
    file: &'s SpillFile,
    n_read: u64,
    at: u64,
}

impl SpillReader<'_> {
    /// The next rows, `None` after the last.
    pub(super) fn next_frame(&mut self) -> Result<Option<Vec<Vec<u32>>>, WriteError> {
        if self.n_read >= self.file.n_frames {
            return Ok(None);
        }
        let mut read = || {
            let mut source = File::open(&self.file.path)?;
            source.seek(SeekFrom::Start(self.at))?;
            let mut header = [0; HEADER];
            source.read_exact(&mut header)?;
            let number = |range: std::ops::Range<usize>| {
                header[range].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
            };
            let (length, nonce) = (number(0..8), number(8..HEADER));
            if length > source.metadata()?.len() {
                return Err(io::Error::other("temporary rows were changed on the disk"));
            }
            let mut sealed = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            source.read_exact(&mut sealed)?;
            self.at += HEADER as u64 + length;
            self.spill.open(self.file.place(self.n_read), nonce, &mut sealed).map(|()| sealed)
        };
        let plain = read().map_err(WriteError::io(&self.file.path))?;
        self.n_read += 1;
        decode(&plain).map(Some).ok_or_else(|| encode_error(&self.file.path, "temporary rows can't be read back"))
    }
}

fn encode_error(path: &Path, message: &str) -> WriteError {
    WriteError::Encode { path: path.to_owned(), message: message.to_owned() }
}

/// Rows as a compressed Arrow stream, after room for a header.
fn encode(columns: Vec<Vec<u32>>, n_rows: usize) -> Result<Vec<u8>, arrow_schema::ArrowError> {
    let field = |position: usize| Field::new(position.to_string(), DataType::UInt32, false);
    let schema = Arc::new(Schema::new((0..columns.len()).map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|ids| Arc::new(UInt32Array::from(ids)) as ArrayRef).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    let mut writer = StreamWriter::try_new_with_options(vec![0; HEADER], &schema, options)?;
    writer.write(&batch)?;
    writer.into_inner()
}

fn decode(bytes: &[u8]) -> Option<Vec<Vec<u32>>> {
    let batch = StreamReader::try_new(bytes, None).ok()?.next()?.ok()?;
    Some(batch.columns().iter().map(|array| array.as_primitive::<UInt32Type>().values().to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_and_their_bytes_are_not_on_the_disk() {
        let parent = tempfile::tempdir().unwrap();
        let spill = Spill::below(parent.path(), 0).unwrap();
        let mut file = spill.file();
        let rows = vec![vec![0x5ec2_e751; 1000], (0..1000).collect()];
        spill.append(&mut file, rows.clone()).unwrap();
        spill.append(&mut file, vec![vec![1], vec![u32::MAX]]).unwrap();
        let bytes = fs::read(&file.path).unwrap();
        assert!(!bytes.windows(4).any(|window| window == 0x5ec2_e751u32.to_le_bytes()));
        // Nothing of Arrow's own format is there either.
        assert!(!bytes.windows(6).any(|window| window == b"Schema" || window == b"ARROW1"));
        let mut reader = spill.read(&file);
        assert_eq!(reader.next_frame().unwrap().unwrap(), rows);
        assert_eq!(reader.next_frame().unwrap().unwrap(), [vec![1], vec![u32::MAX]]);
        assert!(reader.next_frame().unwrap().is_none());
    }

    #[test]
    fn equal_rows_are_never_encrypted_to_equal_bytes() {
        let parent = tempfile::tempdir().unwrap();
        let spill = Spill::below(parent.path(), 0).unwrap();
        let mut nonces = Vec::new();
        let mut bodies = Vec::new();
        for _ in 0..3 {
            let mut file = spill.file();
            for _ in 0..4 {
                let before = fs::metadata(&file.path).map_or(0, |metadata| metadata.len()) as usize;
                spill.append(&mut file, vec![vec![7; 100]]).unwrap();
                let frame = fs::read(&file.path).unwrap().split_off(before);
                nonces.push(frame[8..HEADER].to_vec());
                bodies.push(frame[HEADER..].to_vec());
            }
        }
        let different = |mut list: Vec<Vec<u8>>| {
            list.sort();
            list.dedup();
            list.len()
        };
        assert_eq!((different(nonces), different(bodies)), (12, 12));
    }

    #[test]
    fn a_changed_byte_or_a_frame_in_another_place_is_noticed() {
        let parent = tempfile::tempdir().unwrap();
        let spill = Spill::below(parent.path(), 0).unwrap();
        let (mut file, mut other) = (spill.file(), spill.file());
        spill.append(&mut file, vec![vec![1, 2, 3]]).unwrap();
        let n_first = fs::metadata(&file.path).unwrap().len() as usize;
        spill.append(&mut file, vec![vec![4, 5, 6]]).unwrap();
        spill.append(&mut other, vec![vec![1, 2, 3]]).unwrap();
        let right = fs::read(&file.path).unwrap();
        let is_refused = |bytes: &[u8]| {
            fs::write(&file.path, bytes).unwrap();
            let mut reader = spill.read(&file);
            (0..2).any(|_| reader.next_frame().is_err())
        };
        assert!(!is_refused(&right));
        assert!(is_refused(&fs::read(&other.path).unwrap()), "of another file");
        assert!(is_refused(&[&right[n_first..], &right[..n_first]].concat()), "in another order");
        assert!(is_refused(&[&right[..n_first], &right[..n_first]].concat()), "one twice");
        assert!(is_refused(&right[..n_first]), "cut off");
        for place in 0..right.len() {
            let mut changed = right.clone();
            changed[place] ^= 1;
            assert!(is_refused(&changed), "byte {place}");
        }
    }

    #[test]
    fn a_disk_with_too_little_space_is_refused_before_any_work() {
        let parent = tempfile::tempdir().unwrap();
        let refused = Spill::below(parent.path(), u64::MAX).unwrap_err();
        assert!(matches!(refused, WriteError::NoSpace { .. }));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_look_into_the_folder() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let spill = Spill::below(parent.path(), 0).unwrap();
        let mode = fs::metadata(spill.folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }

    #[test]
    fn an_abandoned_folder_is_removed_and_one_in_use_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let in_use = Spill::below(parent.path(), 0).unwrap();
        let abandoned = parent.path().join(format!("{PREFIX}old"));
        fs::create_dir(&abandoned).unwrap();
        fs::write(abandoned.join(LOCK), "").unwrap();
        let half_removed = parent.path().join(format!("{PREFIX}half"));
        fs::create_dir(&half_removed).unwrap();
        fs::write(half_removed.join("3.cell"), "rows").unwrap();
        let half_made = parent.path().join(format!("{PREFIX}new"));
        fs::create_dir(&half_made).unwrap();
        let next = Spill::below(parent.path(), 0).unwrap();
        assert!(!abandoned.exists() && !half_removed.exists());
        assert!(half_made.exists(), "another process is about to lock it");
        assert!(in_use.folder.path().exists() && next.folder.path().exists());
        let path = next.folder.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }
}
