//! [`Disk`]: a disk in memory, with power that can be cut.
//!
//! A write is safe once its file is flushed. Until then it is pending. When the power is cut, each pending write is
//! kept, lost, or kept in some of its sectors, in any order. The same holds for names: a file that was made or removed
//! may be there or not until the folder is flushed. SQLite flushes the folder when it first flushes a file that it
//! made, and after removing some files; that makes all names of the folder safe.
//!
//! As on a real disk, bytes outside a write never change. SQLite calls this powersafe overwrite, and assumes it by
//! default.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::locks::{FileLocks, SharedMemory};
use crate::recording::Call;
use crate::{Chance, Recording, vfs};

const SECTOR: usize = 512;

/// The disk of one folder. Until the last clone is dropped, SQLite in this process uses it instead of the real disk for
/// the files directly in that folder.
#[derive(Clone)]
pub struct Disk {
    contents: Arc<Mutex<Contents>>,
}

/// What goes wrong with a call that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The power goes: this call and all after it fail, until the disk is restarted.
    PowerCut,
    /// This call fails because the disk is full; later calls succeed.
    Full,
    /// This call fails; later calls succeed.
    Error,
}

/// Which changes that were not flushed survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivors {
    /// No change survives.
    None,
    /// All changes survive.
    All,
    /// Some changes, chosen by this seed, survive wholly or in part.
    Some(u64),
}

/// All files of a disk, including changes that are not flushed.
#[derive(Debug, Clone, Default)]
pub struct Image {
    files: HashMap<String, File>,
}

impl Disk {
    /// An empty disk for a folder.
    pub fn at(folder: &Path) -> Self {
        let folder = folder.canonicalize().expect("the folder of a disk is there");
        let disk = Self { contents: Arc::new(Mutex::new(Contents::default())) };
        vfs::mount(folder, Arc::downgrade(&disk.contents));
        disk
    }

    /// How many calls have written since the disk was (re)started: writes, truncations, flushes, removals.
    pub fn n_calls(&self) -> u64 {
        self.lock().n_calls
    }

    /// Makes one writing call fail. Calls are numbered from 0 since the disk was (re)started.
    pub fn fail_at(&self, call: u64, fault: Fault) {
        self.lock().fail_at(call, fault);
    }

    /// The files as they are now.
    pub fn image(&self) -> Image {
        self.lock().image.clone()
    }

    /// Starts recording calls, until the disk is restarted.
    pub fn record(&self) {
        let mut contents = self.lock();
        let start = contents.image.clone();
        contents.recording = Some(Recording { start, calls: Vec::new() });
    }

    /// The calls recorded so far.
    pub fn recording(&self) -> Recording {
        self.lock().recording.clone().unwrap_or_default()
    }

    /// Turns the disk on again after a power cut that left these files. No file may be open.
    pub fn restart(&self, image: &Image, survivors: Survivors) {
        let mut chance = match survivors {
            Survivors::Some(seed) => Chance::new(seed),
            _ => Chance::new(0),
        };
        let mut names: Vec<&String> = image.files.keys().collect();
        names.sort();
        let mut files = HashMap::new();
        for name in names {
            let kept = image.files[name].after_power_cut(survivors, &mut chance);
            files.insert(name.clone(), File { current: kept.clone(), flushed: kept, pending: Vec::new() });
        }
        *self.lock() = Contents::of(Image { files });
    }

    /// A mounted disk, if it still exists.
    pub(crate) fn mounted(contents: &Weak<Mutex<Contents>>) -> Option<Self> {
        Some(Self { contents: contents.upgrade()? })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    Dead,
    Full,
    Absent,
}

#[derive(Default)]
pub(crate) struct Contents {
    image: Image,
    n_calls: u64,
    fault: Option<(u64, Fault)>,
    is_dead: bool,
    recording: Option<Recording>,
    pub(crate) locks: HashMap<String, FileLocks>,
    pub(crate) memory: HashMap<String, SharedMemory>,
}

impl Image {
    /// The bytes of a file as long as there is power; `None` if there is no such file.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name)?.current.as_deref()
    }

    #[cfg(test)]
    pub(crate) fn files(&self) -> impl Iterator<Item = impl std::fmt::Debug> {
        self.files.iter()
    }
}

#[derive(Debug, Clone, Default)]
struct File {
    /// The content as long as there is power; `None` if there is no such file.
    current: Option<Vec<u8>>,
    /// The content that surely survives a power cut.
    flushed: Option<Vec<u8>>,
    /// The changes that lead from `flushed` to `current`.
    pending: Vec<Pending>,
}

#[derive(Debug, Clone)]
enum Pending {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { size: usize },
    Create,
    Remove,
}

impl Contents {
    /// A disk with these files and with power.
    pub(crate) fn of(image: Image) -> Self {
        Self { image, ..Self::default() }
    }

    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    pub(crate) fn fail_at(&mut self, call: u64, fault: Fault) {
        self.fault = Some((call, fault));
    }

    fn record(&mut self, name: &str, call: impl FnOnce() -> Call) {
        if let Some(recording) = &mut self.recording {
            recording.calls.push((name.to_owned(), call()));
        }
    }

    /// Fails if the power is off.
    pub(crate) fn check_power(&self) -> Result<(), Failed> {
        if self.is_dead { Err(Failed::Dead) } else { Ok(()) }
    }

    /// Counts a call that writes. If the call is to find the disk full or to fail, this returns the error, and the call
    /// must change nothing. At a power cut the call may still leave a part of its change, so this returns
    /// `Met::PowerCut`.
    fn count_call(&mut self) -> Result<Met, Failed> {
        self.check_power()?;
        let call = self.n_calls;
        self.n_calls += 1;
        match self.fault {
            Some((at, Fault::PowerCut)) if at == call => {
                self.is_dead = true;
                Ok(Met::PowerCut)
            }
            Some((at, Fault::Full)) if at == call => Err(Failed::Full),
            Some((at, Fault::Error)) if at == call => Err(Failed::Dead),
            _ => Ok(Met::Nothing),
        }
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.image.files.get(name).is_some_and(|file| file.current.is_some())
    }

    /// Makes a file whose name survives a power cut, like a file that existed before SQLite opened it.
    pub(crate) fn provide(&mut self, name: &str) {
        self.record(name, || Call::Provide);
        let file = self.image.files.entry(name.to_owned()).or_default();
        file.current.get_or_insert_default();
        file.flushed.get_or_insert_default();
    }

    pub(crate) fn create(&mut self, name: &str) {
        self.record(name, || Call::Create);
        let file = self.image.files.entry(name.to_owned()).or_default();
        if file.current.is_none() {
            file.current = Some(Vec::new());
            file.pending.push(Pending::Create);
        }
    }

    pub(crate) fn size(&self, name: &str) -> Result<usize, Failed> {
        self.check_power()?;
        Ok(self.content(name)?.len())
    }

    /// Reads bytes into `target`, and returns how many there were.
    pub(crate) fn read(&self, name: &str, offset: usize, target: &mut [u8]) -> Result<usize, Failed> {
        self.check_power()?;
        let content = self.content(name)?;
        let found = content.get(offset..).unwrap_or_default();
        let n_bytes = found.len().min(target.len());
        target[..n_bytes].copy_from_slice(&found[..n_bytes]);
        Ok(n_bytes)
    }

    pub(crate) fn write(&mut self, name: &str, offset: usize, bytes: &[u8]) -> Result<(), Failed> {
        self.record(name, || Call::Write { offset, bytes: bytes.to_vec() });
        self.change(name, Pending::Write { offset, bytes: bytes.to_vec() })
    }

    pub(crate) fn truncate(&mut self, name: &str, size: usize) -> Result<(), Failed> {
        self.record(name, || Call::Truncate { size });
        self.change(name, Pending::Truncate { size })
    }

    pub(crate) fn flush(&mut self, name: &str) -> Result<(), Failed> {
        self.record(name, || Call::Flush);
        self.count_call()?.or_dead()?;
        let file = self.image.files.get_mut(name).ok_or(Failed::Absent)?;
        let is_new = file.pending.iter().any(Pending::changes_name);
        file.flushed.clone_from(&file.current);
        file.pending.clear();
        if is_new {
            self.image.files.values_mut().for_each(File::flush_name);
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, name: &str, is_flushed: bool) -> Result<(), Failed> {
        self.record(name, || Call::Remove { is_flushed });
        if !self.exists(name) {
            self.check_power()?;
            return Err(Failed::Absent);
        }
        self.change(name, Pending::Remove)?;
        if is_flushed {
            self.image.files.values_mut().for_each(File::flush_name);
        }
        Ok(())
    }

    /// Makes a change that is pending until the next flush. The change at which the power is cut may survive like any
    /// other.
    fn change(&mut self, name: &str, change: Pending) -> Result<(), Failed> {
        let met = self.count_call()?;
        let file = self.image.files.get_mut(name).ok_or(Failed::Absent)?;
        change.apply(&mut file.current);
        file.pending.push(change);
        met.or_dead()
    }

    fn content(&self, name: &str) -> Result<&Vec<u8>, Failed> {
        self.image.files.get(name).and_then(|file| file.current.as_ref()).ok_or(Failed::Absent)
    }
}

/// Whether a call that writes meets a fault.
enum Met {
    Nothing,
    PowerCut,
}

impl Met {
    fn or_dead(self) -> Result<(), Failed> {
        match self {
            Self::Nothing => Ok(()),
            Self::PowerCut => Err(Failed::Dead),
        }
    }
}

impl Pending {
    fn apply(&self, content: &mut Option<Vec<u8>>) {
        match self {
            Self::Create => *content = Some(Vec::new()),
            Self::Remove => *content = None,
            Self::Truncate { size } => {
                if let Some(content) = content {
                    content.truncate(*size);
                }
            }
            Self::Write { offset, bytes } => {
                if let Some(content) = content {
                    let end = offset + bytes.len();
                    if content.len() < end {
                        content.resize(end, 0);
                    }
                    content[*offset..end].copy_from_slice(bytes);
                }
            }
        }
    }

    /// Applies the part of the change that survives.
    fn apply_some(&self, content: &mut Option<Vec<u8>>, chance: &mut Chance) {
        match (chance.below(3), self) {
            (0, _) => {}
            (1, _) | (_, Self::Truncate { .. } | Self::Create | Self::Remove) => self.apply(content),
            (_, Self::Write { offset, bytes }) => {
                for (position, sector) in bytes.chunks(SECTOR).enumerate() {
                    if chance.below(2) == 0 {
                        let offset = offset + position * SECTOR;
                        Self::Write { offset, bytes: sector.to_vec() }.apply(content);
                    }
                }
            }
        }
    }

    fn changes_name(&self) -> bool {
        matches!(self, Self::Create | Self::Remove)
    }
}

impl File {
    /// Makes it safe whether the file exists. Writes since the file was made are still pending.
    fn flush_name(&mut self) {
        if let Some(last) = self.pending.iter().rposition(Pending::changes_name) {
            self.pending[last].apply(&mut self.flushed);
            self.pending.drain(..=last);
        }
    }

    fn after_power_cut(&self, survivors: Survivors, chance: &mut Chance) -> Option<Vec<u8>> {
        let mut content = self.flushed.clone();
        match survivors {
            Survivors::None => {}
            Survivors::All => self.pending.iter().for_each(|change| change.apply(&mut content)),
            Survivors::Some(_) => {
                // Changes of the name keep their order. A write goes to the file that had the name when the write was
                // made. So only the writes between the last change of the name that survived and the next one matter.
                let names: Vec<usize> = (0..self.pending.len()).filter(|at| self.pending[*at].changes_name()).collect();
                let survived = usize::try_from(chance.below(names.len() as u64 + 1)).expect("there are few");
                let from = survived.checked_sub(1).map(|last| names[last]);
                let until = names.get(survived).copied().unwrap_or(self.pending.len());
                if let Some(from) = from {
                    self.pending[from].apply(&mut content);
                }
                for change in &self.pending[from.map_or(0, |from| from + 1)..until] {
                    change.apply_some(&mut content, chance);
                }
            }
        }
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Contents {
        let mut contents = Contents::default();
        contents.provide("a");
        contents.write("a", 0, &[1; 2 * SECTOR]).expect("power is on");
        contents.flush("a").expect("power is on");
        contents
    }

    fn survived(contents: &Contents, survivors: Survivors) -> Option<Vec<u8>> {
        contents.image.files["a"].after_power_cut(
            survivors,
            &mut Chance::new(match survivors {
                Survivors::Some(seed) => seed,
                _ => 0,
            }),
        )
    }

    #[test]
    fn flushed_writes_survive_and_others_may_be_torn() {
        let mut contents = disk();
        contents.write("a", 0, &[2; 2 * SECTOR]).expect("power is on");
        assert_eq!(survived(&contents, Survivors::None), Some(vec![1; 2 * SECTOR]));
        assert_eq!(survived(&contents, Survivors::All), Some(vec![2; 2 * SECTOR]));
        let torn = [[1; SECTOR], [2; SECTOR]].concat();
        assert!((0..100).any(|seed| survived(&contents, Survivors::Some(seed)).as_ref() == Some(&torn)));
    }

    #[test]
    fn a_removal_that_was_not_flushed_may_come_undone_but_files_never_mix() {
        let mut contents = disk();
        contents.remove("a", false).expect("power is on");
        contents.create("a");
        contents.write("a", SECTOR, &[3; SECTOR]).expect("power is on");
        assert_eq!(survived(&contents, Survivors::None), Some(vec![1; 2 * SECTOR]));
        let outcomes: Vec<_> = (0..100).map(|seed| survived(&contents, Survivors::Some(seed))).collect();
        assert!(outcomes.contains(&None));
        assert!(outcomes.iter().flatten().all(|content| !(content.contains(&1) && content.contains(&3))));
    }

    #[test]
    fn flushing_a_new_file_keeps_the_names_of_all_files() {
        let mut contents = disk();
        contents.remove("a", false).expect("power is on");
        contents.create("b");
        contents.flush("b").expect("power is on");
        assert_eq!(survived(&contents, Survivors::None), None);
    }

    #[test]
    fn after_the_power_cut_every_call_fails() {
        let mut contents = disk();
        contents.fault = Some((3, Fault::PowerCut));
        contents.write("a", 0, &[2]).expect("the cut is at the next call");
        assert_eq!(contents.write("a", 1, &[2]), Err(Failed::Dead));
        assert_eq!(contents.flush("a"), Err(Failed::Dead));
        assert_eq!(contents.size("a"), Err(Failed::Dead));
        assert_eq!(survived(&contents, Survivors::None), Some(vec![1; 2 * SECTOR]));
    }
}
