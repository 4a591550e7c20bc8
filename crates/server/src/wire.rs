//! [`Wire`]: whole messages from and to one client.
//!
//! # Guarantee
//! A message that says it is longer than the limit ends the connection before it is read, and memory grows only with
//! bytes that came. A client that stops reading is given up after [`STALLED`], by a clock that goes on while statements
//! compute. Reading and writing can be given up at any await without losing or repeating a byte, and are apart, so that a
//! client that hangs up is noticed while its statement runs.

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::frontend::{FrontendMessage, Malformed, StartupMessage};

/// How long a client may take no byte of what it asked for.
const STALLED: Duration = Duration::from_secs(60);
/// Bytes of the longest message before somebody has logged in.
const LONGEST_AT_START: usize = 10_000;
/// Bytes that are kept before they are sent.
const FULL: usize = 64 * 1024;
/// Bytes for which room is made before they are read.
pub(crate) const CHUNK: usize = 8 * 1024;
/// Bytes that are read while a statement runs, to see whether the client is still there.
const AHEAD: usize = 64 * 1024;

/// Bytes from and to a client, plain or not.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Why nothing more can be said or heard.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("a message of {length} bytes is longer than the limit of {limit}")]
    TooLarge { length: usize, limit: usize },
    #[error("the client is gone")]
    Gone,
}

/// Messages from and to a client.
pub(crate) struct Wire {
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
}

/// Messages from a client.
pub(crate) struct Incoming {
    stream: ReadHalf<Box<dyn ByteStream>>,
    input: BytesMut,
    limit: usize,
}

/// Messages to a client.
pub(crate) struct Outgoing {
    stream: WriteHalf<Box<dyn ByteStream>>,
    output: BytesMut,
    /// The runtime whose clock goes on while statements compute.
    clock: Handle,
}

impl Wire {
    /// Messages through a stream, by the clock of the runtime that this is called in.
    pub(crate) fn new(stream: Box<dyn ByteStream>) -> Wire {
        let (reads, writes) = split(stream);
        Wire {
            incoming: Incoming { stream: reads, input: BytesMut::new(), limit: LONGEST_AT_START },
            outgoing: Outgoing { stream: writes, output: BytesMut::new(), clock: Handle::current() },
        }
    }

    /// The stream itself, to speak TLS through. There must be nothing that was read ahead: it would have come in plain
    /// text and be taken for what was said in secret.
    pub(crate) fn into_stream(self) -> Result<Box<dyn ByteStream>, WireError> {
        let Wire { incoming, outgoing } = self;
        match incoming.input.is_empty() {
            true => Ok(incoming.stream.unsplit(outgoing.stream)),
            false => Err(Malformed("there is more than was asked for").into()),
        }
    }
}

impl Incoming {
    /// From here on messages may be this long.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// For how many bytes there is room.
    #[cfg(any(fuzzing, test))]
    pub(crate) fn n_reserved(&self) -> usize {
        self.input.capacity()
    }

    /// The first message.
    pub(crate) async fn read_startup(&mut self) -> Result<StartupMessage, WireError> {
        let body = self.read_body(0).await?;
        Ok(StartupMessage::read(body)?)
    }

    /// The next message.
    pub(crate) async fn read(&mut self) -> Result<FrontendMessage, WireError> {
        while self.input.is_empty() {
            self.read_more().await?;
        }
        let kind = self.input[0];
        let body = self.read_body(1).await?;
        Ok(FrontendMessage::read(kind, body)?)
    }

    /// Ends once the client has hung up. What it says meanwhile is kept; beyond some bytes nobody looks any more.
    pub(crate) async fn until_gone(&mut self) {
        while self.input.len() < AHEAD {
            if self.read_more().await.is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// The body of the message whose length stands after so many bytes.
    async fn read_body(&mut self, before: usize) -> Result<Bytes, WireError> {
        loop {
            if let Some(length) = self.input.get(before..before + 4) {
                let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
                if length < 4 {
                    return Err(Malformed("it is shorter than its own length").into());
                }
                if length > self.limit {
                    return Err(WireError::TooLarge { length, limit: self.limit });
                }
                if self.input.len() >= before + length {
                    self.input.advance(before + 4);
                    return Ok(self.input.split_to(length - 4).freeze());
                }
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> Result<(), WireError> {
        self.input.reserve(CHUNK);
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(WireError::Gone),
            _ => Ok(()),
        }
    }
}

impl Outgoing {
    /// Keeps a message until it is sent.
    pub(crate) fn put(&mut self, message: &PgWireBackendMessage) -> Result<(), WireError> {
        Ok(message.encode(&mut self.output).map_err(io::Error::other)?)
    }

    /// Keeps bytes that are no message: the answer to a wish for TLS.
    pub(crate) fn put_byte(&mut self, byte: u8) {
        self.output.extend_from_slice(&[byte]);
    }

    /// Sends what is kept where it is much.
    pub(crate) async fn flush_if_full(&mut self) -> Result<(), WireError> {
        if self.output.len() >= FULL { self.flush().await } else { Ok(()) }
    }

    /// Sends what is kept.
    pub(crate) async fn flush(&mut self) -> Result<(), WireError> {
        while !self.output.is_empty() {
            let stalled = self.stalled();
            let written = tokio::select! {
                biased;
                written = self.stream.write_buf(&mut self.output) => written?,
                () = stalled => return Err(WireError::Io(io::ErrorKind::TimedOut.into())),
            };
            if written == 0 {
                return Err(WireError::Gone);
            }
        }
        let stalled = self.stalled();
        tokio::select! {
            biased;
            flushed = self.stream.flush() => Ok(flushed?),
            () = stalled => Err(WireError::Io(io::ErrorKind::TimedOut.into())),
        }
    }

    /// Ends when a client has taken nothing for too long.
    fn stalled(&self) -> Sleep {
        let _clock = self.clock.enter();
        tokio::time::sleep(STALLED)
    }

    /// Ends the connection. What the client makes of it is its own affair.
    pub(crate) async fn close(mut self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.stream.shutdown()).await;
    }
}
