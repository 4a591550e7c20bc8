//! Messages between the server and a worker. A message is a kind, a length, and bytes.

use std::io::{self, Read, Write};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::reader::{StreamDecoder, StreamReader};
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::internal_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Asker;
use crate::SqlError;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// To the worker: a [`Begin`] and the plan.
    Begin,
    /// To the server: [`Kind::Begin`] was received, and execution has not started.
    Begun,
    /// To the worker: rows of a leaf. To the server: rows of the answer.
    Rows,
    /// To the worker: a leaf has no more rows. To the server: the answer has no more rows.
    End,
    /// To the server: a [`Next`] and conditions on the leaf's rows.
    Next,
    /// To the server: a [`Failed`].
    Failed,
}

impl Kind {
    const ALL: [Kind; 6] = [Kind::Begin, Kind::Begun, Kind::Rows, Kind::End, Kind::Next, Kind::Failed];

    fn of(byte: u8) -> io::Result<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == byte).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// A message.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) body: Vec<u8>,
}

/// The settings that a worker needs before it reads its plan.
#[derive(Serialize, Deserialize)]
pub(super) struct Begin {
    /// Bytes that the statement may use.
    pub(super) memory: usize,
    /// The user.
    pub(super) asker: Asker,
    /// Options of the session that differ from the defaults.
    pub(super) options: Vec<(String, String)>,
    /// Labels and parents of the hierarchies. The plan's functions refer to hierarchies by number.
    pub(super) hierarchies: Vec<Vec<(String, u32)>>,
}

/// Asks for rows of a leaf.
#[derive(Serialize, Deserialize)]
pub(super) struct Next {
    pub(super) leaf: usize,
    pub(super) partition: usize,
}

/// Why a statement failed in its worker, without any cell.
#[derive(Serialize, Deserialize)]
pub(super) enum Failed {
    OutOfMemory,
    NoValue,
    OutOfRange,
    DivisionByZero,
    SeveralRows,
    NotImplemented(String),
    Running(String),
    /// A panic, and its place in the code.
    Fault(String),
}

impl Failed {
    pub(super) fn of(error: DataFusionError) -> Failed {
        match SqlError::while_running(error) {
            SqlError::OutOfMemory => Failed::OutOfMemory,
            SqlError::NoValue => Failed::NoValue,
            SqlError::OutOfRange => Failed::OutOfRange,
            SqlError::DivisionByZero => Failed::DivisionByZero,
            SqlError::SeveralRows => Failed::SeveralRows,
            SqlError::Running { what } => Failed::Running(what),
            SqlError::Query(error) => match error.find_root() {
                DataFusionError::NotImplemented(what) => Failed::NotImplemented(what.clone()),
                other => Failed::Running(other.strip_backtrace()),
            },
            other => Failed::Running(other.to_string()),
        }
    }

    pub(super) fn into_error(self) -> SqlError {
        match self {
            Failed::OutOfMemory => SqlError::OutOfMemory,
            Failed::NoValue => SqlError::NoValue,
            Failed::OutOfRange => SqlError::OutOfRange,
            Failed::DivisionByZero => SqlError::DivisionByZero,
            Failed::SeveralRows => SqlError::SeveralRows,
            Failed::NotImplemented(what) => SqlError::Query(DataFusionError::NotImplemented(what)),
            Failed::Running(what) => SqlError::Running { what },
            Failed::Fault(place) => SqlError::StatementFault { place },
        }
    }
}

impl Frame {
    pub(super) fn new(kind: Kind, body: Vec<u8>) -> Frame {
        Frame { kind, body }
    }

    /// A batch, with its schema.
    pub(super) fn rows(batch: &RecordBatch) -> Result<Frame> {
        Ok(Frame::new(Kind::Rows, arrow_bytes(&batch.schema(), Some(batch))?))
    }

    /// The batch of [`Frame::rows`], which refers to the message's bytes instead of copying them.
    pub(super) fn batch(self) -> Result<RecordBatch> {
        let batch = StreamDecoder::new().decode(&mut Buffer::from(self.body))?;
        batch.ok_or_else(|| internal_datafusion_err!("a message without its rows"))
    }

    fn header(&self) -> io::Result<[u8; 5]> {
        let length = u32::try_from(self.body.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        let [a, b, c, d] = length.to_le_bytes();
        Ok([self.kind as u8, a, b, c, d])
    }

    fn length([_, a, b, c, d]: [u8; 5]) -> usize {
        u32::from_le_bytes([a, b, c, d]) as usize
    }

    /// Writes the message, and blocks until it is written.
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.header()?)?;
        to.write_all(&self.body)?;
        to.flush()
    }

    /// Reads a message, and blocks until it is there.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Frame> {
        let mut header = [0; 5];
        from.read_exact(&mut header)?;
        let mut body = vec![0; Frame::length(header)];
        from.read_exact(&mut body)?;
        Ok(Frame::new(Kind::of(header[0])?, body))
    }

    /// Like [`Frame::write`], but asynchronous.
    pub(super) async fn send(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        to.write_all(&self.header()?).await?;
        to.write_all(&self.body).await?;
        to.flush().await
    }

    /// Like [`Frame::read`], but asynchronous. `may_take` decides whether a body of a given length is accepted.
    pub(super) async fn receive(
        from: &mut (impl AsyncRead + Unpin),
        may_take: impl Fn(usize) -> bool,
    ) -> io::Result<Frame> {
        let mut header = [0; 5];
        from.read_exact(&mut header).await?;
        let length = Frame::length(header);
        if !may_take(length) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).await?;
        Ok(Frame::new(Kind::of(header[0])?, body))
    }
}

/// A schema, and a batch with that schema if there is one.
pub(super) fn arrow_bytes(schema: &Schema, batch: Option<&RecordBatch>) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
    if let Some(batch) = batch {
        writer.write(batch)?;
    }
    Ok(writer.into_inner()?)
}

/// The schema of [`arrow_bytes`].
pub(super) fn schema_of(bytes: &[u8]) -> Result<SchemaRef> {
    Ok(Arc::clone(&StreamReader::try_new(bytes, None)?.schema()))
}

/// Joins several byte strings into one.
pub(super) fn joined<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        let part = part.as_ref();
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    }
    bytes
}

/// The parts of [`joined`].
pub(super) fn parts(mut bytes: &[u8]) -> Result<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = u64::from_le_bytes(*length) as usize;
        let (part, rest) = rest.split_at_checked(length).ok_or_else(malformed)?;
        parts.push(part);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(parts) } else { Err(malformed()) }
}

/// The error for a message that can't be understood.
pub(super) fn malformed() -> DataFusionError {
    internal_datafusion_err!("a message between the server and a worker is malformed")
}

pub(super) fn to_json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|_| malformed())
}

pub(super) fn from_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringArray;

    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let column: StringArray = [Some("[20,29]"), None, Some("*")].into_iter().collect();
        let batch = RecordBatch::try_from_iter([("age", Arc::new(column) as _)]).unwrap();
        let mut bytes = Vec::new();
        Frame::rows(&batch).unwrap().write(&mut bytes).unwrap();
        Frame::new(Kind::End, Vec::new()).write(&mut bytes).unwrap();
        let mut rest = bytes.as_slice();
        assert_eq!(Frame::read(&mut rest).unwrap().batch().unwrap(), batch);
        assert_eq!(Frame::read(&mut rest).unwrap().kind, Kind::End);
        assert!(Frame::read(&mut rest).is_err());
    }

    #[test]
    fn parts_are_split_where_they_were_joined() {
        let bytes = joined(["a", "", "bc"]);
        assert_eq!(parts(&bytes).unwrap(), [b"a".as_slice(), b"", b"bc"]);
        assert!(parts(&bytes[..bytes.len() - 1]).is_err());
        assert!(parts(b"abc").is_err());
    }
}
