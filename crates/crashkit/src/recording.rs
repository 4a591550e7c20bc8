//! [`Recording`]: the calls that a disk got, and what a power cut at each of them would have left.
//!
//! After the power is gone, nothing that a process does leaves a trace on the disk. So one run of a history is enough
//! to cut the power at every one of its calls.

use crate::disk::{Contents, Failed, Fault, Image};

/// The calls that a disk got since it began to record.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    pub(crate) start: Image,
    pub(crate) calls: Vec<(String, Call)>,
}

/// A call for a file.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Provide,
    Create,
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { size: usize },
    Flush,
    Remove { is_flushed: bool },
}

impl Recording {
    /// The files that a power cut at each writing call leaves, in the order of the calls, starting with the first call
    /// of the recording.
    pub fn cuts(&self) -> impl Iterator<Item = Image> {
        let mut contents = Contents::of(self.start.clone());
        self.calls.iter().filter_map(move |(name, call)| {
            let mut cut = Contents::of(contents.image().clone());
            cut.fail_at(0, Fault::PowerCut);
            let _ = call.make(name, &mut cut);
            // A call that failed when it was recorded fails again.
            let _ = call.make(name, &mut contents);
            cut.check_power().is_err().then(|| cut.image().clone())
        })
    }
}

impl Call {
    fn make(&self, name: &str, contents: &mut Contents) -> Result<(), Failed> {
        match self {
            Self::Provide => contents.provide(name),
            Self::Create => contents.create(name),
            Self::Write { offset, bytes } => contents.write(name, *offset, bytes)?,
            Self::Truncate { size } => contents.truncate(name, *size)?,
            Self::Flush => contents.flush(name)?,
            Self::Remove { is_flushed } => contents.remove(name, *is_flushed)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is made, written, flushed, cut, removed and made again beside another.
    fn calls() -> Vec<(String, Call)> {
        let calls = [
            ("a", Call::Provide),
            ("a", Call::Write { offset: 0, bytes: vec![1; 7] }),
            ("b", Call::Create),
            ("b", Call::Remove { is_flushed: false }),
            ("b", Call::Remove { is_flushed: false }),
            ("b", Call::Create),
            ("b", Call::Write { offset: 9, bytes: vec![2; 3] }),
            ("b", Call::Flush),
            ("a", Call::Truncate { size: 5 }),
            ("a", Call::Flush),
            ("b", Call::Remove { is_flushed: true }),
        ];
        calls.into_iter().map(|(name, call)| (name.to_owned(), call)).collect()
    }

    #[test]
    fn a_recording_tells_what_a_power_cut_at_each_call_leaves() {
        let recording = Recording { start: Image::default(), calls: calls() };
        let cuts: Vec<Image> = recording.cuts().collect();
        assert_eq!(cuts.len(), 7, "the second removal fails, so it is no writing call");
        for (at, recorded) in cuts.iter().enumerate() {
            let mut contents = Contents::default();
            contents.fail_at(at as u64, Fault::PowerCut);
            for (name, call) in calls() {
                // No file is opened once the power is gone.
                if contents.check_power().is_ok() {
                    let _ = call.make(&name, &mut contents);
                }
            }
            assert!(contents.check_power().is_err(), "call {at}");
            let of = |image: &Image| {
                let mut files: Vec<String> = image.files().map(|file| format!("{file:?}")).collect();
                files.sort();
                files
            };
            assert_eq!(of(recorded), of(contents.image()), "call {at}");
        }
    }
}
