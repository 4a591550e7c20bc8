//! [`InputFormat`] and [`Format`]: the kinds of files that tables are read from and written to.

use std::path::Path;

/// The kind of file that a released table is written to.
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
    /// Not compressed.
    None,
    /// By gzip.
    Gzip,
    /// By Zstandard.
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

    /// The ending of file names of this format, which is also the word for the format in commands.
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

    /// The format that commands call by this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Format::ALL.into_iter().find(|format| format.extension() == word)
    }
}

/// The kind of file that a table is read from. Every format that is written can also be read. A format that can only be read
/// has a variant here and none in [`Format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// Separated text.
    Csv(Compression),
    /// Parquet.
    Parquet,
    /// Arrow IPC, the file format.
    ArrowFile,
    /// Arrow IPC, the streaming format.
    ArrowStream,
}

impl InputFormat {
    /// The format that the ending of a file name tells.
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let (stem, compression) = match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
            (Some(stem), _) => (stem, Compression::Gzip),
            (_, Some(stem)) => (stem, Compression::Zstd),
            (None, None) => (name.as_str(), Compression::None),
        };
        let (_, extension) = stem.rsplit_once('.')?;
        match (extension, compression) {
            ("csv" | "tsv" | "tab" | "txt", compression) => Some(InputFormat::Csv(compression)),
            ("parquet" | "pq", Compression::None) => Some(InputFormat::Parquet),
            ("arrow" | "ipc" | "feather", Compression::None) => Some(InputFormat::ArrowFile),
            ("arrows", Compression::None) => Some(InputFormat::ArrowStream),
            _ => None,
        }
    }

    /// The format in which releases of such a file are written, unless another one is asked for.
    pub fn release_format(self) -> Format {
        match self {
            InputFormat::Csv(compression) => Format::Csv(compression),
            InputFormat::Parquet => Format::Parquet,
            InputFormat::ArrowFile => Format::ArrowFile,
            InputFormat::ArrowStream => Format::ArrowStream,
        }
    }
}

impl From<Format> for InputFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Csv(compression) => InputFormat::Csv(compression),
            Format::Parquet => InputFormat::Parquet,
            Format::ArrowFile => InputFormat::ArrowFile,
            Format::ArrowStream => InputFormat::ArrowStream,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_format() {
        let of = |name: &str| InputFormat::of_path(Path::new(name));
        assert_eq!(of("a/patient.CSV"), Some(InputFormat::Csv(Compression::None)));
        assert_eq!(of("patient.tsv.gz"), Some(InputFormat::Csv(Compression::Gzip)));
        assert_eq!(of("patient.parquet"), Some(InputFormat::Parquet));
        assert_eq!(of("patient.feather"), Some(InputFormat::ArrowFile));
        assert_eq!(of("patient.parquet.gz"), None);
        assert_eq!(of("patient"), None);
        for format in Format::ALL {
            assert_eq!(of(&format!("t.{}", format.extension())).map(InputFormat::release_format), Some(format));
            assert_eq!(InputFormat::from(format).release_format(), format);
            assert_eq!(Format::from_word(format.extension()), Some(format));
        }
    }
}
