//! [`TextBlocks`]: a byte stream as blocks of valid UTF-8, what was left of one at the start of the next.
//!
//! Nothing is ever replaced: bytes that are no text end the blocks, and the text before them is still delivered, so
//! that the reader can say in which row they are.

use std::io::{self, ErrorKind, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding};

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A byte stream cut into blocks of text. A byte order mark at its start is skipped.
pub(super) struct TextBlocks<R> {
    reader: R,
    buffer: Vec<u8>,
    n_filled: usize,
    end: BlockEnd,
    at_start: bool,
}

/// A block of text.
pub(super) struct Block<'a> {
    /// What was not consumed of the last block, and more.
    pub(super) text: &'a str,
    /// What comes after it.
    pub(super) end: BlockEnd,
}

/// What comes after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockEnd {
    /// Another block.
    More,
    /// Nothing.
    File,
    /// Bytes that are no text.
    Invalid,
}

impl<R: Read> TextBlocks<R> {
    pub(super) fn new(reader: R, block_size: usize) -> Self {
        // A byte order mark must fit into the first block.
        let buffer = vec![0; block_size.max(BYTE_ORDER_MARK.len())];
        TextBlocks { reader, buffer, n_filled: 0, end: BlockEnd::More, at_start: true }
    }

    /// The next block: the last one without its first `consumed` bytes, and as much more as fits. A block of which
    /// nothing was consumed comes back larger, unless the stream is at its end.
    pub(super) fn next(&mut self, consumed: usize) -> io::Result<Block<'_>> {
        self.buffer.copy_within(consumed..self.n_filled, 0);
        self.n_filled -= consumed;
        if self.n_filled == self.buffer.len() && self.end == BlockEnd::More {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        self.fill()?;
        if self.at_start {
            self.at_start = false;
            if self.buffer[..self.n_filled].starts_with(BYTE_ORDER_MARK) {
                self.buffer.copy_within(BYTE_ORDER_MARK.len()..self.n_filled, 0);
                self.n_filled -= BYTE_ORDER_MARK.len();
                self.fill()?;
            }
        }
        let bytes = &self.buffer[..self.n_filled];
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Block { text, end: self.end }),
            Err(error) => {
                let cut_by_the_block = error.error_len().is_none() && self.end == BlockEnd::More;
                let text = std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("valid up to there");
                Ok(Block { text, end: if cut_by_the_block { BlockEnd::More } else { BlockEnd::Invalid } })
            }
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        while self.end == BlockEnd::More && self.n_filled < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.n_filled..]) {
                Ok(0) => self.end = BlockEnd::File,
                Ok(n_read) => self.n_filled += n_read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_not_text(&error) => {
                    self.end = BlockEnd::Invalid;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_not_text(error: &io::Error) -> bool {
    match error.get_ref() {
        Some(inner) => inner.is::<NotText>(),
        None => false,
    }
}

/// Bytes of another encoding as UTF-8. Fails with [`NotText`] after all that could be decoded.
pub(super) struct Transcoder<R> {
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

/// Says that bytes are not of the encoding.
#[derive(Debug, thiserror::Error)]
#[error("bytes that are no text")]
struct NotText;

impl<R: Read> Transcoder<R> {
    pub(super) fn new(reader: R, encoding: &'static Encoding) -> Self {
        Transcoder {
            reader,
            decoder: encoding.new_decoder_without_bom_handling(),
            source: vec![0; 1 << 16],
            n_source: 0,
            decoded: Vec::new(),
            n_delivered: 0,
            state: Decoding::Open,
        }
    }

    /// Decodes the next bytes of the source; those that don't fit wait for the next call.
    fn decode(&mut self) -> io::Result<()> {
        let n_read = self.reader.read(&mut self.source[self.n_source..])?;
        let at_end = n_read == 0 && self.n_source < self.source.len();
        self.n_source += n_read;
        // Enough for any encoding, and all that the decoder may still hold back.
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

    /// All text of a stream in blocks of this size, consuming all but the last byte of each.
    fn text_of(bytes: &[u8], block_size: usize) -> (String, BlockEnd) {
        read_all(TextBlocks::new(bytes, block_size))
    }

    fn read_all<R: Read>(mut blocks: TextBlocks<R>) -> (String, BlockEnd) {
        let mut all = String::new();
        let mut consumed = 0;
        loop {
            let block = blocks.next(consumed).unwrap();
            consumed = block.text.char_indices().next_back().map_or(0, |(last, _)| last);
            if block.end != BlockEnd::More {
                all.push_str(block.text);
                return (all, block.end);
            }
            all.push_str(&block.text[..consumed]);
        }
    }

    #[test]
    fn blocks_of_any_size_give_the_same_text() {
        let text = "\u{feff}na\u{ef}ve, \u{4e2d}\u{6587} and \u{1f600}\n";
        for block_size in 1..40 {
            assert_eq!(text_of(text.as_bytes(), block_size), (text[3..].to_owned(), BlockEnd::File));
        }
    }

    #[test]
    fn text_before_invalid_bytes_is_delivered() {
        for block_size in 1..10 {
            assert_eq!(text_of(b"abc\xffdef", block_size), ("abc".to_owned(), BlockEnd::Invalid));
            assert_eq!(text_of(b"abc\xe4\xb8", block_size), ("abc".to_owned(), BlockEnd::Invalid));
        }
    }

    #[test]
    fn other_encodings_are_decoded_strictly() {
        let latin = Transcoder::new(&b"Z\xfcrich"[..], encoding_rs::WINDOWS_1252);
        assert_eq!(read_all(TextBlocks::new(latin, 3)), ("Z\u{fc}rich".to_owned(), BlockEnd::File));
        let utf16 = Transcoder::new(&b"\xff\xfea\0\xe4\0"[..], encoding_rs::UTF_16LE);
        assert_eq!(read_all(TextBlocks::new(utf16, 1)), ("a\u{e4}".to_owned(), BlockEnd::File));
        let broken = Transcoder::new(&b"a\0\0\xd8b\0"[..], encoding_rs::UTF_16LE);
        assert_eq!(read_all(TextBlocks::new(broken, 5)), ("a".to_owned(), BlockEnd::Invalid));
    }
}
