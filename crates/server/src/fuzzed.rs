//! Properties of reading messages that hold for arbitrary bytes. The target in `fuzz/` calls this function with random
//! bytes, and the tests call it with the files in `fuzz/corpus`.

use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use bytes::Bytes;
use kohort_sql::access::Verifier;
use pgwire::api::Type;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Runtime};

use crate::frontend::{Bind, FrontendMessage, StartupMessage, Target, read_sasl_initial};
use crate::parameters::literal;
use crate::scram::{BOUND, PLAIN, Scram};
use crate::wire::{CHUNK, Wire, WireError};

/// The longest accepted message in bytes.
const LIMIT: usize = 4096;

/// Replaces `~` in values. No error may contain it.
const CANARY: &str = "Canary7c1";

/// The verifier for the password `pencil`, with 4096 iterations as in RFC 7677.
const VERIFIER: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:\
                        wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("there is a runtime without a clock"));

/// Reads a client's messages. The first byte decides whether they begin with a startup message, and the size of the
/// pieces in which they arrive.
///
/// Pieces of any size must give the same messages. A message must contain every byte of its body, so that writing it
/// gives the same body. No more memory than for the received bytes may be reserved. Values of parameters and logins
/// must be accepted or refused without showing them.
///
/// # Panics
/// If a property does not hold.
pub fn wire(data: &[u8]) {
    let [how, said @ ..] = data else { return };
    let starts = if how & 1 != 0 { Starts::New } else { Starts::LoggedIn };
    let in_pieces = read_all(said, usize::from(how >> 1) + 1, starts);
    assert_eq!(in_pieces, read_all(said, usize::MAX, starts), "pieces of another size give other messages");
    bodies(said);
    login(said);
}

/// The state in which messages begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Starts {
    /// Before the startup message.
    New,
    /// After the login.
    LoggedIn,
}

/// All messages in debug format, and the error at the end.
fn read_all(said: &[u8], piece: usize, starts: Starts) -> Vec<String> {
    let client = Client { said: said.to_vec(), at: 0, piece };
    RUNTIME.block_on(async {
        let mut wire = Wire::new(Box::new(client));
        let mut heard = Vec::new();
        if starts == Starts::New {
            match wire.incoming.read_startup().await {
                Ok(message) => heard.push(format!("{message:?}")),
                Err(problem) => return vec![ending(&problem)],
            }
        }
        wire.incoming.set_limit(LIMIT);
        loop {
            match wire.incoming.read().await {
                Ok(message) => {
                    heard.push(format!("{message:?}"));
                    if let FrontendMessage::Bind(bind) = &message {
                        parameters(bind);
                    }
                }
                Err(problem) => {
                    heard.push(ending(&problem));
                    break;
                }
            }
            assert!(
                wire.incoming.n_reserved() <= 2 * (said.len() + CHUNK),
                "more memory is reserved than bytes arrived"
            );
        }
        heard
    })
}

/// Reads the bytes as the body of every kind of message.
fn bodies(said: &[u8]) {
    for kind in [b'Q', b'P', b'B', b'D', b'C', b'E', b'p'] {
        let Ok(message) = FrontendMessage::read(kind, Bytes::copy_from_slice(said)) else { continue };
        let (as_kind, body) = written(&message).expect("it is no message of COPY");
        let is_unbounded = matches!(message, FrontendMessage::Execute { max_rows: 0, .. });
        assert!(is_unbounded || body == said, "the message does not hold exactly its body");
        assert_eq!((as_kind, body.len()), (kind, said.len()));
    }
    if let Ok(StartupMessage::Startup { parameters, .. }) = StartupMessage::read(Bytes::copy_from_slice(said)) {
        let mut body = said[..4].to_vec();
        for (name, value) in &parameters {
            put_text(&mut body, name);
            put_text(&mut body, value);
        }
        assert!(said.starts_with(&body));
    }
}

fn ending(problem: &WireError) -> String {
    match problem {
        WireError::TooLarge { length, limit } => assert!(length > limit),
        WireError::Malformed(_) | WireError::Gone => {}
        WireError::Io(error) => panic!("{error}"),
    }
    problem.to_string()
}

/// Encodes a message as a client does: its kind and its body. A negative number of rows becomes 0. Messages of COPY
/// can't be encoded, because their content is not kept.
fn written(message: &FrontendMessage) -> Option<(u8, Vec<u8>)> {
    let mut body = Vec::new();
    let kind = match message {
        FrontendMessage::Query(text) => {
            put_text(&mut body, text);
            b'Q'
        }
        FrontendMessage::Parse { name, query, types } => {
            put_text(&mut body, name);
            put_text(&mut body, query);
            put_list(&mut body, types, |body, of| body.extend(of.to_be_bytes()));
            b'P'
        }
        FrontendMessage::Bind(bind) => {
            put_text(&mut body, &bind.portal);
            put_text(&mut body, &bind.statement);
            put_list(&mut body, &bind.formats, |body, format| body.extend(format.to_be_bytes()));
            put_list(&mut body, &bind.values, |body, value| put_value(body, value.as_ref()));
            put_list(&mut body, &bind.result_formats, |body, format| body.extend(format.to_be_bytes()));
            b'B'
        }
        FrontendMessage::Describe(target) => {
            put_target(&mut body, target);
            b'D'
        }
        FrontendMessage::Close(target) => {
            put_target(&mut body, target);
            b'C'
        }
        FrontendMessage::Execute { portal, max_rows } => {
            put_text(&mut body, portal);
            body.extend(u32::try_from(*max_rows).expect("it came in 32 bits").to_be_bytes());
            b'E'
        }
        FrontendMessage::Flush => b'H',
        FrontendMessage::Sync => b'S',
        FrontendMessage::Terminate => b'X',
        FrontendMessage::Password(said) => {
            body.extend(said);
            b'p'
        }
        FrontendMessage::Copy => return None,
    };
    Some((kind, body))
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    assert!(!text.contains('\0'), "a text contains the zero byte that should end it");
    body.extend(text.bytes().chain([0]));
}

fn put_value(body: &mut Vec<u8>, value: Option<&Bytes>) {
    match value {
        Some(value) => {
            body.extend((value.len() as u32).to_be_bytes());
            body.extend(value);
        }
        None => body.extend((-1_i32).to_be_bytes()),
    }
}

fn put_list<T>(body: &mut Vec<u8>, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    body.extend(u16::try_from(items.len()).expect("it came in 16 bits").to_be_bytes());
    items.iter().for_each(|item| put(body, item));
}

fn put_target(body: &mut Vec<u8>, target: &Target) {
    let (kind, name) = match target {
        Target::Statement(name) => (b'S', name),
        Target::Portal(name) => (b'P', name),
    };
    body.push(kind);
    put_text(body, name);
}

/// Values of parameters of every type, in both formats.
fn parameters(bind: &Bind) {
    let types = [
        Type::BOOL,
        Type::INT2,
        Type::INT4,
        Type::INT8,
        Type::OID,
        Type::FLOAT4,
        Type::FLOAT8,
        Type::NUMERIC,
        Type::DATE,
        Type::TIME,
        Type::TIMESTAMP,
        Type::TIMESTAMPTZ,
        Type::TEXT,
        Type::INT4_ARRAY,
    ];
    for (position, value) in bind.values.iter().take(8).enumerate() {
        let Some(value) = value else { continue };
        let marked =
            value.iter().flat_map(|byte| if *byte == b'~' { CANARY.as_bytes() } else { std::slice::from_ref(byte) });
        let marked: Bytes = marked.copied().collect();
        for of in &types {
            for format in [0, 1, 2] {
                if let Err(failure) = literal(Some(&marked), of, format, position) {
                    assert!(!format!("{failure:?}").contains(CANARY), "a value in a message");
                }
            }
        }
    }
}

/// A login: the bytes are its first message, and after a zero byte its last.
fn login(said: &[u8]) {
    if let Ok((mechanism, first)) = read_sasl_initial(Bytes::copy_from_slice(said)) {
        let mut body = Vec::new();
        put_text(&mut body, &mechanism);
        put_value(&mut body, Some(&first));
        assert!(said.starts_with(&body));
    }
    let mut parts = said.splitn(2, |&byte| byte == 0);
    let (first, last) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let verifier: Verifier = VERIFIER.parse().expect("it is one");
    for (mechanism, binding) in [(PLAIN, None), (PLAIN, Some(&[7; 32][..])), (BOUND, Some(&[7; 32][..]))] {
        if let Ok((scram, answer)) = Scram::start(mechanism, first, verifier.clone(), binding) {
            assert!(answer.starts_with("r="));
            assert!(scram.finish(last).is_err(), "somebody logs in without the password");
        }
    }
}

/// A client that sends bytes in pieces and reads nothing.
struct Client {
    said: Vec<u8>,
    at: usize,
    piece: usize,
}

impl AsyncRead for Client {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, target: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let left = &self.said[self.at..];
        let n = left.len().min(self.piece).min(target.remaining());
        target.put_slice(&left[..n]);
        self.at += n;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Client {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_corpus_of_messages_is_read_as_messages_should_be() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wire");
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty());
        for file in files {
            // If this test fails, the last printed file is the reason.
            println!("{}", file.display());
            super::wire(&std::fs::read(file).unwrap());
        }
    }
}
