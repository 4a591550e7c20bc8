//! [`TextBlocks`]: a byte stream cut into blocks of valid UTF-8. Text of a block that was not consumed starts the next one.
//!
//! Nothing is ever replaced: bytes that are no text end the blocks, and the text before them is still delivered, so
//! that the reader can say in which row they are.

use std::io::{self, ErrorKind, Read};

use super::decode::is_not_text;

/// A byte stream cut into blocks of text.
pub(super) struct TextBlocks<R> {
    reader: R,
    buffer: Vec<u8>,
    n_filled: usize,
    end: BlockEnd,
}

/// A block of text.
pub(super) struct Block<'a> {
    /// The text of the last block that was not consumed, and more.
    pub(super) text: &'a str,
    /// What comes after the text.
    pub(super) end: BlockEnd,
}

/// What comes after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockEnd {
    /// Another block follows.
    More,
    /// The file ends.
    File,
    /// Bytes follow that are not UTF-8.
    Invalid,
}

impl<R: Read> TextBlocks<R> {
    pub(super) fn new(reader: R, block_size: usize) -> Self {
        // An empty buffer could not grow.
        TextBlocks { reader, buffer: vec![0; block_size.max(1)], n_filled: 0, end: BlockEnd::More }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// All text of a stream in blocks of this size, consuming all but the last byte of each.
    fn text_of(bytes: &[u8], block_size: usize) -> (String, BlockEnd) {
        let mut blocks = TextBlocks::new(bytes, block_size);
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
        let text = "na\u{ef}ve, \u{4e2d}\u{6587} and \u{1f600}\n";
        for block_size in 1..40 {
            assert_eq!(text_of(text.as_bytes(), block_size), (text.to_owned(), BlockEnd::File));
        }
    }

    #[test]
    fn text_before_invalid_bytes_is_delivered() {
        for block_size in 1..10 {
            assert_eq!(text_of(b"abc\xffdef", block_size), ("abc".to_owned(), BlockEnd::Invalid));
            assert_eq!(text_of(b"abc\xe4\xb8", block_size), ("abc".to_owned(), BlockEnd::Invalid));
        }
    }
}
