//! [`Spill`]: a folder for rows that don't fit into memory.
//!
//! # Guarantee
//! Whatever is on the disk is encrypted and authenticated with a key that exists only in memory (AES-256-GCM), so rows can't be
//! read after the process has ended, however it ended. The folder is removed when the work is done or fails. A folder that a
//! killed process left behind is removed by the next job that writes beside it: a folder in use is locked.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

const PREFIX: &str = ".kohort-cells-";
const LOCK: &str = "lock";

/// A folder of encrypted files, removed when dropped.
pub struct Spill {
    folder: TempDir,
    /// Held for as long as the folder is in use.
    _lock: File,
    key: LessSafeKey,
}

impl std::fmt::Debug for Spill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Spill").field(&self.folder.path()).finish()
    }
}

impl Spill {
    /// A new folder below `parent`, which should be on the file system of the release. Removes folders that killed processes
    /// left there. `n_bytes` is what the rows may take.
    ///
    /// # Errors
    /// If there is less space left, or nothing can be written there.
    pub fn below(parent: &Path, n_bytes: u64) -> Result<Spill, WriteError> {
        remove_abandoned(parent);
        if let Some(n_free) = free_bytes(parent).filter(|&n_free| n_free < n_bytes) {
            return Err(WriteError::NoSpace { path: parent.to_owned(), n_bytes, n_free });
        }
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent).map_err(WriteError::io(parent))?;
        let lock = File::create_new(folder.path().join(LOCK)).and_then(|file| file.lock().map(|()| file));
        let lock = lock.map_err(WriteError::io(parent))?;
        let mut key = [0; 32];
        let random = SystemRandom::new().fill(&mut key).map_err(|_| io::Error::other("no random numbers"));
        random.map_err(WriteError::io(parent))?;
        let key = UnboundKey::new(&AES_256_GCM, &key).map_err(|_| io::Error::other("no key can be made"));
        let key = LessSafeKey::new(key.map_err(WriteError::io(parent))?);
        Ok(Spill { folder, _lock: lock, key })
    }

    /// A new file. Its number must not be used twice, because it is part of what makes each encryption different.
    pub(super) fn file(&self, number: u32) -> SpillFile {
        SpillFile { path: self.folder.path().join(format!("{number}.cell")), number, n_frames: 0, n_rows: 0 }
    }

    /// The bytes that the files take on the disk.
    pub fn n_bytes(&self) -> u64 {
        let entries = fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    /// Appends rows of numbers to a file.
    pub(super) fn append(&self, file: &mut SpillFile, columns: &[Vec<u32>]) -> Result<(), WriteError> {
        let n_rows = columns.first().map_or(0, Vec::len);
        let frame = encode(columns, n_rows).map_err(|error| encode_error(&file.path, &error.to_string()))?;
        let sealed = self.seal(file.number, file.n_frames, frame).map_err(WriteError::io(&file.path))?;
        let write = || {
            let mut target = OpenOptions::new().create(true).append(true).open(&file.path)?;
            target.write_all(&(sealed.len() as u64).to_le_bytes())?;
            target.write_all(&sealed)
        };
        write().map_err(WriteError::io(&file.path))?;
        file.n_frames += 1;
        file.n_rows += n_rows as u64;
        Ok(())
    }

    /// Reads a file, frame by frame.
    pub(super) fn read(&self, file: &SpillFile) -> Result<SpillReader<'_>, WriteError> {
        let reader = match file.n_frames {
            0 => None,
            _ => Some(BufReader::new(File::open(&file.path).map_err(WriteError::io(&file.path))?)),
        };
        Ok(SpillReader { spill: self, file: file.clone(), next: 0, reader })
    }

    /// Deletes a file that is not needed any more.
    pub(super) fn remove(&self, file: &SpillFile) -> Result<(), WriteError> {
        match fs::remove_file(&file.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(WriteError::io(&file.path)(error)),
            _ => Ok(()),
        }
    }

    fn seal(&self, number: u32, frame: u64, mut plain: Vec<u8>) -> io::Result<Vec<u8>> {
        let sealed = self.key.seal_in_place_append_tag(nonce(number, frame), Aad::empty(), &mut plain);
        sealed.map(|()| plain).map_err(|_| io::Error::other("rows can't be encrypted"))
    }

    fn open(&self, number: u32, frame: u64, sealed: &mut Vec<u8>) -> io::Result<()> {
        let opened = self.key.open_in_place(nonce(number, frame), Aad::empty(), sealed);
        let n_plain = opened.map_err(|_| io::Error::other("temporary rows were changed on the disk"))?.len();
        sealed.truncate(n_plain);
        Ok(())
    }
}

/// The space that is left on a file system, if the system tells.
fn free_bytes(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    return rustix::fs::statvfs(path).ok().map(|found| found.f_bavail.saturating_mul(found.f_frsize));
    #[cfg(not(unix))]
    return None.filter(|_: &u64| path.exists());
}

/// The number of a file and of a frame within it, so that no two frames have the same nonce.
fn nonce(file: u32, frame: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&file.to_le_bytes());
    bytes[4..].copy_from_slice(&frame.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Removes folders whose lock nobody holds. A folder that can't be removed does no harm, because nobody has its key.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = File::open(entry.path().join(LOCK));
        let is_abandoned = lock.is_ok_and(|lock| lock.try_lock().is_ok());
        if is_abandoned {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A file of encrypted rows.
#[derive(Clone, Debug)]
pub(super) struct SpillFile {
    path: PathBuf,
    number: u32,
    n_frames: u64,
    pub(super) n_rows: u64,
}

/// Reads rows frame by frame.
pub(super) struct SpillReader<'a> {
    spill: &'a Spill,
    file: SpillFile,
    next: u64,
    reader: Option<BufReader<File>>,
}

impl SpillReader<'_> {
    /// The next rows, `None` after the last.
    pub(super) fn next_frame(&mut self) -> Result<Option<Vec<Vec<u32>>>, WriteError> {
        let Some(reader) = self.reader.as_mut().filter(|_| self.next < self.file.n_frames) else { return Ok(None) };
        let mut read = || {
            let mut length = [0; 8];
            reader.read_exact(&mut length)?;
            let mut sealed = vec![0; usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?];
            reader.read_exact(&mut sealed)?;
            self.spill.open(self.file.number, self.next, &mut sealed).map(|()| sealed)
        };
        let plain = read().map_err(WriteError::io(&self.file.path))?;
        self.next += 1;
        decode(&plain).map(Some).ok_or_else(|| encode_error(&self.file.path, "temporary rows can't be read back"))
    }
}

fn encode_error(path: &Path, message: &str) -> WriteError {
    WriteError::Encode { path: path.to_owned(), message: message.to_owned() }
}

/// Rows as a compressed Arrow stream.
fn encode(columns: &[Vec<u32>], n_rows: usize) -> Result<Vec<u8>, arrow_schema::ArrowError> {
    let field = |position: usize| Field::new(position.to_string(), DataType::UInt32, false);
    let schema = Arc::new(Schema::new((0..columns.len()).map(field).collect::<Vec<_>>()));
    let arrays = columns.iter().map(|ids| Arc::new(UInt32Array::from(ids.clone())) as ArrayRef).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options)?;
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
        let mut file = spill.file(7);
        let rows = vec![vec![0x5ec2_e751; 1000], (0..1000).collect()];
        spill.append(&mut file, &rows).unwrap();
        spill.append(&mut file, &[vec![1], vec![u32::MAX]]).unwrap();
        let bytes = fs::read(&file.path).unwrap();
        assert!(!bytes.windows(4).any(|window| window == 0x5ec2_e751u32.to_le_bytes()));
        let mut reader = spill.read(&file).unwrap();
        assert_eq!(reader.next_frame().unwrap().unwrap(), rows);
        assert_eq!(reader.next_frame().unwrap().unwrap(), [vec![1], vec![u32::MAX]]);
        assert!(reader.next_frame().unwrap().is_none());
    }

    #[test]
    fn a_changed_byte_or_a_frame_in_another_place_is_noticed() {
        let parent = tempfile::tempdir().unwrap();
        let spill = Spill::below(parent.path(), 0).unwrap();
        let (mut file, mut other) = (spill.file(1), spill.file(2));
        spill.append(&mut file, &[vec![1, 2, 3]]).unwrap();
        spill.append(&mut other, &[vec![1, 2, 3]]).unwrap();
        fs::copy(&other.path, &file.path).unwrap();
        assert!(spill.read(&file).unwrap().next_frame().is_err());
        let mut bytes = fs::read(&other.path).unwrap();
        bytes[20] ^= 1;
        fs::write(&other.path, bytes).unwrap();
        assert!(spill.read(&other).unwrap().next_frame().is_err());
    }

    #[test]
    fn a_disk_with_too_little_space_is_refused_before_any_work() {
        let parent = tempfile::tempdir().unwrap();
        let refused = Spill::below(parent.path(), u64::MAX).unwrap_err();
        assert!(matches!(refused, WriteError::NoSpace { .. }));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_abandoned_folder_is_removed_and_one_in_use_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let in_use = Spill::below(parent.path(), 0).unwrap();
        let abandoned = parent.path().join(format!("{PREFIX}old"));
        fs::create_dir(&abandoned).unwrap();
        fs::write(abandoned.join(LOCK), "").unwrap();
        let next = Spill::below(parent.path(), 0).unwrap();
        assert!(!abandoned.exists());
        assert!(in_use.folder.path().exists() && next.folder.path().exists());
        let path = next.folder.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }
}
