//! [`decoded`]: the bytes of a file as UTF-8, by its byte order mark and by what the spec says.
//!
//! # Guarantee
//! A byte order mark is never part of the text, and a spec never overrules it: where the two contradict each other there is an
//! error, because text read in the wrong byte order is still text, only another one. Nothing is replaced: bytes that are not of
//! the encoding end the stream, after all text before them.

use std::io::{self, Cursor, ErrorKind, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::super::error::ReadError;

/// The longest byte order mark has three bytes.
const LONGEST_MARK: u64 = 3;

/// The text of a file as UTF-8 without its byte order mark, and the encoding of the file. Where the spec names no encoding, the
/// mark decides, and a file without a mark is UTF-8.
pub(super) fn decoded<'a>(
    mut reader: Box<dyn Read + 'a>,
    asked: Option<&str>,
) -> Result<(Box<dyn Read + 'a>, &'static Encoding), ReadError> {
    let named = match asked {
        None => None,
        Some(name) => {
            let encoding = Encoding::for_label(name.as_bytes());
            Some((name, encoding.ok_or_else(|| ReadError::UnknownEncoding { name: name.to_owned() })?))
        }
    };
    let mut start = Vec::new();
    reader.by_ref().take(LONGEST_MARK).read_to_end(&mut start).map_err(|source| ReadError::Io { source })?;
    let mark = Encoding::for_bom(&start);
    let encoding = match (named, mark) {
        (None, None) => UTF_8,
        (None, Some((marked, _))) => marked,
        // An empty file is not a problem of its encoding; it is reported as empty later.
        (Some((name, _)), None) if leaves_order_open(name) && !start.is_empty() => {
            return Err(ReadError::NoByteOrder { encoding: name.to_owned() });
        }
        (Some((_, encoding)), None) => encoding,
        (Some((name, _)), Some((marked, _))) if leaves_order_open(name) && [UTF_16LE, UTF_16BE].contains(&marked) => {
            marked
        }
        (Some((_, encoding)), Some((marked, _))) if encoding == marked => encoding,
        (Some((name, _)), Some((marked, _))) => {
            return Err(ReadError::ContradictingMark { encoding: name.to_owned(), marked: marked.name() });
        }
    };
    let n_marked = mark.map_or(0, |(_, n_bytes)| n_bytes);
    let bytes = Cursor::new(start.split_off(n_marked)).chain(reader);
    let text: Box<dyn Read + 'a> =
        if encoding == UTF_8 { Box::new(bytes) } else { Box::new(Transcoder::new(bytes, encoding)) };
    Ok((text, encoding))
}

/// Whether a name of UTF-16 leaves it to the file which byte comes first. For encoding_rs such a name means little endian, as it
/// does for browsers, and a file in the other order would be read as other characters without an error.
fn leaves_order_open(name: &str) -> bool {
    let is_utf16 = Encoding::for_label(name.as_bytes()) == Some(UTF_16LE);
    is_utf16 && !name.trim().eq_ignore_ascii_case("utf-16le")
}

/// Whether reading ended because bytes are not of the encoding.
pub(super) fn is_not_text(error: &io::Error) -> bool {
    match error.get_ref() {
        Some(inner) => inner.is::<NotText>(),
        None => false,
    }
}

/// Says that bytes are not of the encoding.
#[derive(Debug, thiserror::Error)]
#[error("bytes that are no text")]
struct NotText;

/// Bytes of another encoding as UTF-8. Fails with [`NotText`] after all that could be decoded.
struct Transcoder<R> {
    reader: R,
    decoder: Decoder,
    source: Vec<u8>,
    n_source: usize,
    decoded: Vec<u8>,
    n_delivered: usize,
    state: Decoding,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Decoding {
    Open,
    AtEnd,
    Malformed,
}

impl<R: Read> Transcoder<R> {
    fn new(reader: R, encoding: &'static Encoding) -> Self {
        Transcoder {
            reader,
            // The caller has removed the byte order mark, and a second one is a character.
            decoder: encoding.new_decoder_without_bom_handling(),
            source: vec![0; 1 << 16],
            n_source: 0,
            decoded: Vec::new(),
            n_delivered: 0,
            state: Decoding::Open,
        }
    }

    /// Decodes the next bytes of the source. Bytes that don't fit wait for the next call.
    fn decode(&mut self) -> io::Result<()> {
        let n_read = self.reader.read(&mut self.source[self.n_source..])?;
        let at_end = n_read == 0 && self.n_source < self.source.len();
        self.n_source += n_read;
        // Enough for any encoding, and for everything that the decoder may still hold back.
        self.decoded.resize(3 * self.source.len() + 16, 0);
        let (result, n_used, n_decoded) =
            self.decoder.decode_to_utf8_without_replacement(&self.source[..self.n_source], &mut self.decoded, at_end);
        self.decoded.truncate(n_decoded);
        self.n_delivered = 0;
        self.source.copy_within(n_used..self.n_source, 0);
        self.n_source -= n_used;
        self.state = match result {
            DecoderResult::Malformed(..) => Decoding::Malformed,
            DecoderResult::InputEmpty if at_end => Decoding::AtEnd,
            DecoderResult::InputEmpty | DecoderResult::OutputFull => Decoding::Open,
        };
        Ok(())
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while self.n_delivered == self.decoded.len() {
            match self.state {
                Decoding::Open => self.decode()?,
                Decoding::AtEnd => return Ok(0),
                Decoding::Malformed => return Err(io::Error::new(ErrorKind::InvalidData, NotText)),
            }
        }
        let waiting = &self.decoded[self.n_delivered..];
        let n_given = waiting.len().min(target.len());
        target[..n_given].copy_from_slice(&waiting[..n_given]);
        self.n_delivered += n_given;
        Ok(n_given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "age\u{e4}\n1\n";

    /// `TEXT` in these two-byte units, after the mark.
    fn utf16(mark: &[u8], unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        [mark.to_vec(), TEXT.encode_utf16().flat_map(unit).collect()].concat()
    }

    /// The text of a file, or what is wrong with it.
    fn read(bytes: &[u8], asked: Option<&str>) -> Result<String, String> {
        let (mut reader, _) = decoded(Box::new(bytes), asked).map_err(|problem| problem.to_string())?;
        let mut text = String::new();
        reader.read_to_string(&mut text).map_err(|error| format!("{text:?}, then {}", error.kind()))?;
        Ok(text)
    }

    #[test]
    fn a_mark_decides_the_byte_order_of_utf_16() {
        let little = utf16(b"\xff\xfe", u16::to_le_bytes);
        let big = utf16(b"\xfe\xff", u16::to_be_bytes);
        for asked in [None, Some("utf-16"), Some("UTF-16"), Some("unicode"), Some("ucs-2")] {
            assert_eq!(read(&little, asked), Ok(TEXT.to_owned()), "{asked:?}");
            assert_eq!(read(&big, asked), Ok(TEXT.to_owned()), "{asked:?}");
        }
        assert_eq!(read(&little, Some("utf-16le")), Ok(TEXT.to_owned()));
        assert_eq!(read(&big, Some("utf-16be")), Ok(TEXT.to_owned()));
    }

    #[test]
    fn without_a_mark_the_spec_must_name_the_byte_order() {
        let (little, big) = (utf16(b"", u16::to_le_bytes), utf16(b"", u16::to_be_bytes));
        assert_eq!(read(&little, Some("utf-16le")), Ok(TEXT.to_owned()));
        assert_eq!(read(&big, Some("utf-16be")), Ok(TEXT.to_owned()));
        let refused =
            Err("encoding 'utf-16' leaves the byte order open, and the file has no byte order mark".to_owned());
        assert_eq!(read(&little, Some("utf-16")), refused);
        assert_eq!(read(&big, Some("utf-16")), refused);
        assert_eq!(read(b"", Some("utf-16")), Ok(String::new()));
    }

    #[test]
    fn a_mark_that_contradicts_the_spec_is_refused() {
        let refused = |asked: &str, marked: &str| {
            Err(format!("the file begins with the byte order mark of {marked}, but the spec says encoding '{asked}'"))
        };
        let (little, big) = (utf16(b"\xff\xfe", u16::to_le_bytes), utf16(b"\xfe\xff", u16::to_be_bytes));
        let utf8 = format!("\u{feff}{TEXT}").into_bytes();
        assert_eq!(read(&little, Some("utf-16be")), refused("utf-16be", "UTF-16LE"));
        assert_eq!(read(&big, Some("utf-16le")), refused("utf-16le", "UTF-16BE"));
        assert_eq!(read(&big, Some("utf-8")), refused("utf-8", "UTF-16BE"));
        assert_eq!(read(&utf8, Some("utf-16")), refused("utf-16", "UTF-8"));
        assert_eq!(read(&utf8, Some("windows-1252")), refused("windows-1252", "UTF-8"));
    }

    #[test]
    fn one_mark_is_removed_and_a_second_is_text() {
        for asked in [None, Some("utf-8")] {
            assert_eq!(read("\u{feff}\u{feff}a".as_bytes(), asked), Ok("\u{feff}a".to_owned()));
            assert_eq!(read(b"a", asked), Ok("a".to_owned()));
        }
        assert_eq!(read(b"\xfe\xff\xfe\xff\0a", Some("utf-16")), Ok("\u{feff}a".to_owned()));
    }

    #[test]
    fn other_encodings_are_decoded_strictly() {
        assert_eq!(read(b"Z\xfcrich", Some("windows-1252")), Ok("Z\u{fc}rich".to_owned()));
        assert!(read(b"a\0\0\xd8b\0", Some("utf-16le")).unwrap_err().ends_with("then invalid data"));
        assert_eq!(read(b"", Some("klingon")), Err("unknown encoding 'klingon'".to_owned()));
    }
}
