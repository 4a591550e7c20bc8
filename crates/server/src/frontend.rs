//! [`FrontendMessage`]: a client's message, decoded from its bytes.
//!
//! # Guarantee
//! Decoding never panics, and never allocates more than the size of the message. The length of a message is checked
//! before it is read (see [`crate::wire`]).

use bytes::{Buf, Bytes};

/// A message during or after the login.
#[derive(Debug)]
pub(crate) enum FrontendMessage {
    /// Statements in one text.
    Query(String),
    /// Prepares a statement.
    Parse { name: String, query: String, types: Vec<u32> },
    /// Binds values to a prepared statement.
    Bind(Bind),
    /// Asks for the columns of a statement or portal.
    Describe(Target),
    /// Closes a statement or portal.
    Close(Target),
    /// Asks for rows of a portal.
    Execute { portal: String, max_rows: usize },
    /// Asks for buffered answers.
    Flush,
    /// The end of a series of messages.
    Sync,
    /// Ends the connection.
    Terminate,
    /// A part of a login.
    Password(Bytes),
    /// A message of COPY, which this server does not run.
    Copy,
}

/// The values for a statement, and the formats of its result.
#[derive(Debug)]
pub(crate) struct Bind {
    pub(crate) portal: String,
    pub(crate) statement: String,
    pub(crate) formats: Vec<i16>,
    pub(crate) values: Vec<Option<Bytes>>,
    pub(crate) result_formats: Vec<i16>,
}

/// A statement or a portal by name.
#[derive(Debug)]
pub(crate) enum Target {
    Statement(String),
    Portal(String),
}

/// The first message of a client.
#[derive(Debug)]
pub(crate) enum StartupMessage {
    /// Asks for TLS.
    Tls,
    /// Asks for GSSAPI encryption.
    Gss,
    /// Cancels the statement of another connection.
    Cancel { process: i32, secret: i32 },
    /// The user and other settings.
    Startup { minor: u16, parameters: Vec<(String, String)> },
}

/// Why bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const MAJOR: u16 = 3;

impl StartupMessage {
    /// Reads the body of the first message, without its length.
    pub(crate) fn read(body: Bytes) -> Result<StartupMessage, Malformed> {
        let mut body = Body(body);
        match body.u32()? {
            TLS => Ok(StartupMessage::Tls),
            GSS => Ok(StartupMessage::Gss),
            CANCEL => Ok(StartupMessage::Cancel { process: body.u32()? as i32, secret: body.u32()? as i32 }),
            version if (version >> 16) as u16 == MAJOR => {
                let mut parameters = Vec::new();
                loop {
                    let name = body.text()?;
                    if name.is_empty() {
                        break;
                    }
                    parameters.push((name, body.text()?));
                }
                Ok(StartupMessage::Startup { minor: version as u16, parameters })
            }
            _ => Err(Malformed("this is not version 3 of the protocol")),
        }
    }
}

impl FrontendMessage {
    /// Reads a message from its kind and its body, without its length.
    pub(crate) fn read(kind: u8, body: Bytes) -> Result<FrontendMessage, Malformed> {
        let mut body = Body(body);
        let message = match kind {
            b'Q' => FrontendMessage::Query(body.text()?),
            b'P' => {
                let (name, query) = (body.text()?, body.text()?);
                FrontendMessage::Parse { name, query, types: body.list(Body::u32)? }
            }
            b'B' => FrontendMessage::Bind(Bind {
                portal: body.text()?,
                statement: body.text()?,
                formats: body.list(Body::i16)?,
                values: body.list(Body::value)?,
                result_formats: body.list(Body::i16)?,
            }),
            b'D' => FrontendMessage::Describe(body.target()?),
            b'C' => FrontendMessage::Close(body.target()?),
            b'E' => {
                let portal = body.text()?;
                // 0 means all rows, and so do negative numbers, as in PostgreSQL.
                let max_rows = usize::try_from(body.u32()? as i32).unwrap_or(0);
                FrontendMessage::Execute { portal, max_rows }
            }
            b'H' => FrontendMessage::Flush,
            b'S' => FrontendMessage::Sync,
            b'X' => FrontendMessage::Terminate,
            b'p' => return Ok(FrontendMessage::Password(body.0)),
            b'd' | b'c' | b'f' => return Ok(FrontendMessage::Copy),
            _ => return Err(Malformed("unknown kind of message")),
        };
        if body.0.is_empty() { Ok(message) } else { Err(Malformed("it has extra bytes at its end")) }
    }
}

/// Reads the first message of a SASL login: the mechanism, and the first data for it.
pub(crate) fn read_sasl_initial(body: Bytes) -> Result<(String, Bytes), Malformed> {
    let mut body = Body(body);
    let mechanism = body.text()?;
    let said = body.value()?.ok_or(Malformed("the login has no first message"))?;
    Ok((mechanism, said))
}

/// The rest of a message.
struct Body(Bytes);

impl Body {
    fn u32(&mut self) -> Result<u32, Malformed> {
        self.0.try_get_u32().map_err(|_| Malformed("it ends too early"))
    }

    fn i16(&mut self) -> Result<i16, Malformed> {
        self.0.try_get_i16().map_err(|_| Malformed("it ends too early"))
    }

    /// A text up to a zero byte.
    fn text(&mut self) -> Result<String, Malformed> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Malformed("a text has no end"))?;
        let text = self.0.split_to(end);
        self.0.advance(1);
        String::from_utf8(text.into()).map_err(|_| Malformed("a text is not UTF-8"))
    }

    /// A value after its length, which is -1 for NULL.
    fn value(&mut self) -> Result<Option<Bytes>, Malformed> {
        match self.u32()? as i32 {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) if length <= self.0.len() => Ok(Some(self.0.split_to(length))),
                _ => Err(Malformed("a value is longer than the message")),
            },
        }
    }

    /// A count and that many items. No memory is reserved for items that may be missing.
    fn list<T>(&mut self, item: impl Fn(&mut Body) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let n_items = self.i16()? as u16;
        let mut items = Vec::new();
        for _ in 0..n_items {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn target(&mut self) -> Result<Target, Malformed> {
        let kind = self.0.try_get_u8().map_err(|_| Malformed("it ends too early"))?;
        match kind {
            b'S' => Ok(Target::Statement(self.text()?)),
            b'P' => Ok(Target::Portal(self.text()?)),
            _ => Err(Malformed("it names neither a statement nor a portal")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_read_as_clients_write_them() {
        let read = |kind, body: &'static [u8]| FrontendMessage::read(kind, Bytes::from_static(body));
        assert!(matches!(read(b'Q', b"SELECT 1\0"), Ok(FrontendMessage::Query(text)) if text == "SELECT 1"));
        let bind = read(b'B', b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0");
        let Ok(FrontendMessage::Bind(bind)) = bind else { panic!("{bind:?}") };
        assert_eq!((bind.portal.as_str(), bind.statement.as_str()), ("p", "s"));
        assert_eq!(bind.values, [Some(Bytes::from_static(b"ab")), None]);
        let execute = read(b'E', b"\0\xff\xff\xff\xff");
        assert!(matches!(execute, Ok(FrontendMessage::Execute { max_rows: 0, .. })), "{execute:?}");
    }

    #[test]
    fn messages_that_lie_about_their_length_are_refused() {
        let read = |kind, body: &'static [u8]| FrontendMessage::read(kind, Bytes::from_static(body));
        assert!(read(b'Q', b"SELECT 1").is_err());
        assert!(read(b'Q', b"SELECT 1\0more").is_err());
        assert!(read(b'Q', b"\xff\0").is_err());
        assert!(read(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xffab\0\0").is_err());
        assert!(read(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfeab\0\0").is_err());
        assert!(read(b'P', b"\0\0\xff\xff").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(kind: u8, body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = FrontendMessage::read(kind, Bytes::from(body.clone()));
            let _ = StartupMessage::read(Bytes::from(body.clone()));
            let _ = read_sasl_initial(Bytes::from(body));
        }
    }
}
