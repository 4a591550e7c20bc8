//! Finds damage in the log (`kohort.db-wal`) of a store that was not closed.
//!
//! SQLite reads a log up to the first invalid frame, and takes the rest for an unfinished change before a crash. It
//! can't tell damage from a crash, so it would silently drop everything that was committed after a damaged frame. This
//! module can tell: a commit is flushed before the next change is written. So if a frame is invalid, and frames of a
//! later change follow, then the invalid frame had once been on the disk and was damaged afterwards.
//!
//! # Guarantee
//!
//! A log after a crash is never reported as damaged, provided that the disk keeps flushed data and writes sectors
//! whole. Damage in the last two transactions of a log can't always be told from a crash.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::StoreError;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The magic number. If its lowest bit is set, checksums are computed from big-endian words.
const MAGIC: u32 = 0x377f_0682;
const VERSION: u32 = 3_007_000;

/// The path of the log beside a store's file.
pub(crate) fn log_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Checks the log beside a store's file for damage. Nobody may write to the log meanwhile.
pub(crate) fn check_log(file: &Path) -> Result<(), StoreError> {
    let log = log_of(file);
    let opened = match File::open(&log) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io(format!("can't read '{}'", log.display()), error)),
    };
    match find_damage(BufReader::with_capacity(1 << 20, opened)) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => Err(StoreError::corrupt(what).in_file(&log)),
        Err(error) => Err(StoreError::io(format!("can't read '{}'", log.display()), error)),
    }
}

/// The two checksums that SQLite continues from frame to frame.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sums(u32, u32);

impl Sums {
    fn over(self, bytes: &[u8], is_big_endian: bool) -> Sums {
        let word = |bytes: &[u8]| {
            let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
            if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        bytes.chunks_exact(8).fold(self, |Sums(first, second), pair| {
            let first = first.wrapping_add(word(pair)).wrapping_add(second);
            Sums(first, second.wrapping_add(word(&pair[4..])).wrapping_add(first))
        })
    }
}

/// The number at this position of a header.
fn number(header: &[u8], position: usize) -> u32 {
    let bytes = &header[4 * position..][..4];
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Returns what is damaged in a log, if anything.
pub(crate) fn find_damage(mut log: impl Read) -> std::io::Result<Option<&'static str>> {
    let mut header = [0; HEADER];
    if !fill(&mut log, &mut header)? {
        return Ok(None);
    }
    let is_big_endian = number(&header, 0) & 1 == 1;
    let page = number(&header, 2) as usize;
    let mut sums = Sums(0, 0).over(&header[..24], is_big_endian);
    let is_known = number(&header, 0) & !1 == MAGIC && number(&header, 1) == VERSION;
    if !is_known || sums != Sums(number(&header, 6), number(&header, 7)) || !(512..=65_536).contains(&page) {
        // SQLite flushes the header before it writes the first frame.
        let has_frames = fill(&mut log, &mut [0; FRAME_HEADER])?;
        return Ok(has_frames.then_some("its beginning can't be read, so the last commits are lost"));
    }
    let mut frame = vec![0; FRAME_HEADER + page];
    let mut is_readable = true;
    let mut is_over = false;
    while fill(&mut log, &mut frame)? {
        let is_of_log = frame[8..16] == header[16..24];
        if is_readable {
            let next = sums.over(&frame[..8], is_big_endian).over(&frame[FRAME_HEADER..], is_big_endian);
            is_readable = is_of_log && next == Sums(number(&frame, 4), number(&frame, 5));
            sums = next;
        }
        if !is_readable && is_of_log {
            if is_over {
                return Ok(Some("a part can't be read, and changes after it had been committed"));
            }
            // This frame ends the change that has the invalid frame.
            is_over = number(&frame, 1) != 0;
        }
    }
    Ok(None)
}

/// Fills the buffer, and returns whether there were enough bytes.
fn fill(log: &mut impl Read, bytes: &mut [u8]) -> std::io::Result<bool> {
    match log.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use kohort_crashkit::{Chance, Disk, Image, Survivors};

    use super::*;
    use crate::Store;

    const LOG: &str = "kohort.db-wal";

    /// A disk on which a store was created, changed, closed, opened, changed, and left open. Some changes were rolled
    /// back after they had reached the log.
    fn with_history(folder: &Path, n_changes: u64) -> (Disk, Store) {
        let disk = Disk::at(folder);
        disk.record();
        let mut chance = Chance::new(7);
        let mut store = Store::open(folder).unwrap();
        for number in 0..n_changes {
            if number == n_changes / 2 {
                drop(store);
                store = Store::open(folder).unwrap();
            }
            let change = store.write().unwrap();
            let length = usize::try_from(chance.below(9_000)).unwrap();
            change.put_record("kind", &chance.below(9).to_string(), &"x".repeat(length)).unwrap();
            if chance.below(4) > 0 {
                change.commit().unwrap();
            }
        }
        (disk, store)
    }

    fn damage_of(image: &Image) -> Option<&'static str> {
        image.file(LOG).and_then(|log| find_damage(log).unwrap())
    }

    #[test]
    fn no_power_cut_is_taken_for_damage() {
        let folder = tempfile::tempdir().unwrap();
        let (disk, store) = with_history(folder.path(), 40);
        drop(store);
        let mut n_logs = 0;
        for (call, image) in (0..).zip(disk.recording().cuts()) {
            for survivors in [Survivors::None, Survivors::All, Survivors::Some(call), Survivors::Some(call + 1_000)] {
                disk.restart(&image, survivors);
                let left = disk.image();
                n_logs += usize::from(left.file(LOG).is_some());
                assert_eq!(damage_of(&left), None, "call {call}, {survivors:?}");
            }
        }
        assert!(n_logs > 200, "there are logs: {n_logs}");
    }

    #[test]
    fn a_byte_that_changed_before_the_last_two_commits_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (disk, store) = with_history(folder.path(), 24);
        let image = disk.image();
        drop(store);
        let whole = image.file(LOG).unwrap();
        assert_eq!(find_damage(whole).unwrap(), None);
        let frame = FRAME_HEADER + 4_096;
        let frames: Vec<&[u8]> = whole[HEADER..].chunks_exact(frame).collect();
        let commits: Vec<usize> = (0..frames.len()).filter(|&at| number(frames[at], 1) != 0).collect();
        let last_sure = commits[commits.len() - 3];
        for at in 0..=last_sure {
            // Bytes of: the page number, the mark of a commit, the salt of the log, a checksum, and the page itself.
            for offset in [3, 8, 17, 600] {
                let mut damaged = whole.to_vec();
                damaged[HEADER + at * frame + offset] ^= 0x40;
                assert!(find_damage(damaged.as_slice()).unwrap().is_some(), "frame {at}, byte {offset}");
            }
        }
        for offset in [0, 9, 18, 30] {
            let mut damaged = whole.to_vec();
            damaged[offset] ^= 0x40;
            assert!(find_damage(damaged.as_slice()).unwrap().is_some(), "header, byte {offset}");
        }
    }
}
