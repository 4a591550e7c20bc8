//! [`Format`]: what kind of file a table is, told by its name.

use std::path::Path;

/// What kind of file a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Separated text.
    Csv(Compression),
    /// Parquet.
    Parquet,
    /// Arrow IPC, the file format.
    ArrowFile,
    /// Arrow IPC, the streaming format.
    ArrowStream,
}

/// How a CSV file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] = [
        Format::Csv(Compression::None),
        Format::Csv(Compression::Gzip),
        Format::Csv(Compression::Zstd),
        Format::Parquet,
        Format::ArrowFile,
        Format::ArrowStream,
    ];

    /// How a file of this format ends, and the word `--format` takes.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Csv(Compression::None) => "csv",
            Format::Csv(Compression::Gzip) => "csv.gz",
            Format::Csv(Compression::Zstd) => "csv.zst",
            Format::Parquet => "parquet",
            Format::ArrowFile => "arrow",
            Format::ArrowStream => "arrows",
        }
    }

    /// The format with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Format::ALL.into_iter().find(|format| format.extension() == word)
    }

    /// The format a file of this name has.
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let (stem, compression) = match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
            (Some(stem), _) => (stem, Compression::Gzip),
            (_, Some(stem)) => (stem, Compression::Zstd),
            (None, None) => (name.as_str(), Compression::None),
        };
        let (_, extension) = stem.rsplit_once('.')?;
        match (extension, compression) {
            ("csv" | "tsv" | "tab" | "txt", compression) => Some(Format::Csv(compression)),
            ("parquet" | "pq", Compression::None) => Some(Format::Parquet),
            ("arrow" | "ipc" | "feather", Compression::None) => Some(Format::ArrowFile),
            ("arrows", Compression::None) => Some(Format::ArrowStream),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_format() {
        let of = |name: &str| Format::of_path(Path::new(name));
        assert_eq!(of("a/patient.CSV"), Some(Format::Csv(Compression::None)));
        assert_eq!(of("patient.tsv.gz"), Some(Format::Csv(Compression::Gzip)));
        assert_eq!(of("patient.parquet"), Some(Format::Parquet));
        assert_eq!(of("patient.feather"), Some(Format::ArrowFile));
        assert_eq!(of("patient.parquet.gz"), None);
        assert_eq!(of("patient"), None);
        for format in Format::ALL {
            assert_eq!(of(&format!("t.{}", format.extension())), Some(format));
            assert_eq!(Format::from_word(format.extension()), Some(format));
        }
    }
}
