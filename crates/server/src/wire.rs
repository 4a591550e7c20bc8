//! [`Wire`]: reads and writes whole messages of one client.
//!
//! # Guarantee
//! A message whose length exceeds the limit ends the connection before its body is read, and memory grows only with
//! bytes that have arrived. A client that stops reading is disconnected after [`STALLED`], by a clock that does not
//! stop while statements compute. Reading and writing can be cancelled at any await without losing or repeating a byte.
//! Reading and writing are separate, so that the server notices if a client disconnects while its statement runs.

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::frontend::{FrontendMessage, Malformed, StartupMessage};

/// How long a client may read nothing of its answer.
const STALLED: Duration = Duration::from_secs(60);
/// The longest message in bytes before the login.
const LONGEST_AT_START: usize = 10_000;
/// Bytes that are buffered before they are sent.
const FULL: usize = 64 * 1024;
/// The number of bytes for which memory is reserved before they arrive.
pub(crate) const CHUNK: usize = 8 * 1024;
/// The number of bytes that are read ahead while a statement runs, to notice whether the client disconnects.
const AHEAD: usize = 64 * 1024;

/// A connection to a client, with or without TLS.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Why no more messages can be exchanged.
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

/// The messages from and to a client.
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
    /// The runtime whose clock does not stop while statements compute.
    clock: Handle,
}

impl Wire {
    /// Exchanges messages through a stream, with the clock of the current runtime.
    pub(crate) fn new(stream: Box<dyn ByteStream>) -> Wire {
        let (reads, writes) = split(stream);
        Wire {
            incoming: Incoming { stream: reads, input: BytesMut::new(), limit: LONGEST_AT_START },
            outgoing: Outgoing { stream: writes, output: BytesMut::new(), clock: Handle::current() },
        }
    }

    /// Returns the stream for a TLS handshake. Nothing may have been read ahead, because an attacker could have sent it
    /// in plain text and it would be taken for a part of the encrypted connection.
    pub(crate) fn into_stream(self) -> Result<Box<dyn ByteStream>, WireError> {
        let Wire { incoming, outgoing } = self;
        match incoming.input.is_empty() {
            true => Ok(incoming.stream.unsplit(outgoing.stream)),
            false => Err(Malformed("bytes follow the request for TLS").into()),
        }
    }
}

impl Incoming {
    /// Sets the largest length of messages.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The number of bytes for which memory is reserved.
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

    /// Waits until the client disconnects. Messages that arrive meanwhile are kept, up to a limit.
    pub(crate) async fn until_gone(&mut self) {
        while self.input.len() < AHEAD {
            if self.read_more().await.is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Reads the body of a message whose length comes after `before` bytes.
    async fn read_body(&mut self, before: usize) -> Result<Bytes, WireError> {
        loop {
            if let Some(length) = self.input.get(before..before + 4) {
                let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
                if length < 4 {
                    return Err(Malformed("its length is too small").into());
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
    /// Buffers a message.
    pub(crate) fn put(&mut self, message: &PgWireBackendMessage) -> Result<(), WireError> {
        Ok(message.encode(&mut self.output).map_err(io::Error::other)?)
    }

    /// Buffers a single byte: the answer to a request for TLS.
    pub(crate) fn put_byte(&mut self, byte: u8) {
        self.output.extend_from_slice(&[byte]);
    }

    /// Sends the buffer if it is full.
    pub(crate) async fn flush_if_full(&mut self) -> Result<(), WireError> {
        if self.output.len() >= FULL { self.flush().await } else { Ok(()) }
    }

    /// Sends the buffer.
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

    /// A timer that ends when a client has read nothing for too long.
    fn stalled(&self) -> Sleep {
        let _clock = self.clock.enter();
        tokio::time::sleep(STALLED)
    }

    /// Closes the connection, and ignores failures.
    pub(crate) async fn close(mut self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.stream.shutdown()).await;
    }
}
