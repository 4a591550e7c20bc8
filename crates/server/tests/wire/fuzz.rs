//! Random bytes at every step of the protocol. The server must stay up, and its memory limited.

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_postgres::NoTls;

use crate::client::connect;
use crate::fixture::{ANALYST, PASSWORD, PEOPLE, Served, serve, serve_as};

/// A startup message for this user.
fn startup(user: &str) -> Vec<u8> {
    let mut body = 196_608u32.to_be_bytes().to_vec();
    body.extend(format!("user\0{user}\0database\0kohort\0\0").bytes());
    framed(None, &body)
}

fn framed(kind: Option<u8>, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    kind.into_iter().chain(length).chain(body.iter().copied()).collect()
}

/// Sends bytes, closes the sending side, and reads the answer.
async fn say(served: &Served, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    // The server may have disconnected before all bytes were sent.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut heard = Vec::new();
    let listened = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut heard)).await;
    assert!(listened.is_ok(), "the server neither answers nor hangs up");
    heard
}

async fn is_up(served: &Served) {
    let mut ann = connect(served, ANALYST).await;
    assert_eq!(ann.rows("SELECT count(*) FROM seen").await.unwrap(), [["8"]]);
}

/// Sends many random messages to one server, which must still be up afterwards.
async fn say_many(n_cases: u32, strategy: impl Strategy<Value = Vec<u8>>) {
    let served = serve_as(PEOPLE, |configuration| configuration.startup_timeout = 5).await;
    let mut runner = TestRunner::new(Config { cases: n_cases, ..Config::default() });
    for _ in 0..n_cases {
        let bytes = strategy.new_tree(&mut runner).unwrap().current();
        say(&served, &bytes).await;
    }
    assert_eq!(served.server.metrics().logins.get(), 0);
    // This address has had too many failed logins, so use another one.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let stream = socket.connect(([127, 0, 0, 1], served.port).into()).await.unwrap();
    let mut login = tokio_postgres::Config::new();
    login.user(ANALYST).password(PASSWORD).dbname("kohort");
    let (client, connection) = login.connect_raw(stream, NoTls).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(client.query("SELECT * FROM seen", &[]).await.unwrap().len(), 8);
    drop(client);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_first() {
    say_many(100, proptest::collection::vec(any::<u8>(), 0..300)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_instead_of_a_login() {
    let random = proptest::collection::vec(any::<u8>(), 0..300);
    say_many(50, random.prop_map(|bytes| [startup(ANALYST), bytes].concat())).await;
    let password = proptest::collection::vec(any::<u8>(), 0..300);
    say_many(50, password.prop_map(|body| [startup(ANALYST), framed(Some(b'p'), &body)].concat())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_without_a_login_is_not_answered() {
    let served = serve(PEOPLE).await;
    let bytes = [startup(ANALYST), framed(Some(b'Q'), b"SELECT * FROM seen\0")].concat();
    let heard = say(&served, &bytes).await;
    assert!(!heard.windows(5).any(|word| word == b"north"), "{heard:?}");
    assert!(heard.windows(5).any(|word| word == b"08P01"), "{heard:?}");
    is_up(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_in_plain_text_before_tls_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = crate::limits::make_certificate(folder.path());
    let served = serve_as(PEOPLE, |configuration| {
        configuration.tls_certificate = Some(certificate);
        configuration.tls_key = Some(key);
    })
    .await;
    let wish = framed(None, &80_877_103u32.to_be_bytes());
    let heard = say(&served, &[wish, startup(ANALYST)].concat()).await;
    assert_eq!(heard, b"S");
    is_up(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_says_it_is_huge_is_refused_before_it_comes() {
    let served = serve(PEOPLE).await;
    for length in [u32::MAX, i32::MAX as u32, 1 << 30, 10_001, 0, 3] {
        say(&served, &[length.to_be_bytes().as_slice(), &[0; 100]].concat()).await;
        let message = [b"p".as_slice(), length.to_be_bytes().as_slice(), &[0; 100]].concat();
        let heard = say(&served, &[startup("somebody else"), message].concat()).await;
        assert!(heard.windows(5).any(|word| word == b"FATAL"), "{length}: {heard:?}");
    }
    is_up(&served).await;
}

/// A connection after its login, for sending bytes.
mod raw {
    use bytes::BytesMut;

    use super::*;
    use crate::fixture::PASSWORD;

    pub(super) struct Raw {
        stream: TcpStream,
    }

    pub(super) async fn log_in(served: &Served) -> Raw {
        let mut raw = Raw { stream: TcpStream::connect(("127.0.0.1", served.port)).await.unwrap() };
        raw.write(&startup(ANALYST)).await;
        raw.read().await;
        let mut scram = postgres_protocol::authentication::sasl::ScramSha256::new(
            PASSWORD.as_bytes(),
            postgres_protocol::authentication::sasl::ChannelBinding::unsupported(),
        );
        let mut message = BytesMut::new();
        postgres_protocol::message::frontend::sasl_initial_response("SCRAM-SHA-256", scram.message(), &mut message)
            .unwrap();
        raw.write(&message).await;
        let (_, body) = raw.read().await;
        scram.update(&body[4..]).unwrap();
        let mut message = BytesMut::new();
        postgres_protocol::message::frontend::sasl_response(scram.message(), &mut message).unwrap();
        raw.write(&message).await;
        raw.read_until(b'Z').await;
        raw
    }

    impl Raw {
        pub(super) async fn write(&mut self, bytes: &[u8]) {
            self.stream.write_all(bytes).await.unwrap();
        }

        async fn read(&mut self) -> (u8, Vec<u8>) {
            let kind = self.stream.read_u8().await.unwrap();
            let length = self.stream.read_u32().await.unwrap();
            let mut body = vec![0; length as usize - 4];
            self.stream.read_exact(&mut body).await.unwrap();
            (kind, body)
        }

        async fn read_until(&mut self, kind: u8) {
            while self.read().await.0 != kind {}
        }

        /// Sends bytes, disconnects, and waits until the server has disconnected too.
        pub(super) async fn say(mut self, bytes: &[u8]) {
            let _ = self.stream.write_all(bytes).await;
            let _ = self.stream.shutdown().await;
            let mut heard = Vec::new();
            let listened = tokio::time::timeout(Duration::from_secs(30), self.stream.read_to_end(&mut heard)).await;
            assert!(listened.is_ok(), "the server neither answers nor hangs up");
        }

        pub(super) fn into_stream(self) -> TcpStream {
            self.stream
        }
    }
}

/// Messages that mostly follow the protocol.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let texts = prop_oneof![
        Just("SELECT ward FROM seen\0"),
        Just("SELECT ward FROM seen WHERE ward = $1 LIMIT $2\0"),
        Just("SELECT $1::int\0"),
        Just("BEGIN\0"),
        Just("DECLARE c CURSOR FOR SELECT * FROM seen\0"),
        Just("FETCH 2 FROM c\0"),
        Just("\0"),
        Just("SELECT * FROM pg_class WHERE oid = $1\0"),
        Just("COPY seen FROM STDIN\0"),
        Just("DECLARE c CURSOR FOR SELECT * FROM seen; FETCH 3 FROM c; CLOSE c; SELECT 1; SELECT nothing; SELECT 2\0"),
        Just("BEGIN; SET LOCAL kohort.purpose = 'care'; SELECT 1; COMMIT; DISCARD ALL\0"),
        Just("SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $65535\0"),
    ];
    let names = prop_oneof![Just("\0"), Just("s\0"), Just("c\0")];
    let tail = proptest::collection::vec(any::<u8>(), 0..40);
    let counted = proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(2), Just(255), any::<u8>()], 0..24);
    let message = prop_oneof![
        4 => texts.clone().prop_map(|text| framed(Some(b'Q'), text.as_bytes())),
        4 => (names.clone(), texts, counted.clone()).prop_map(|(name, text, types)| {
            framed(Some(b'P'), &[name.as_bytes(), text.as_bytes(), &types].concat())
        }),
        2 => (names.clone(), proptest::sample::select(vec![b'P', b'B', b'D', b'E', b'C', b'S', b'H']), counted.clone())
            .prop_map(|(name, kind, body)| framed(Some(kind), &[name.as_bytes(), &body].concat())),
        3 => names.clone().prop_map(|name| framed(Some(b'P'), &[name.as_bytes(), b"SELECT ward FROM seen\0\0\0"].concat())),
        3 => names.clone().prop_map(|name| framed(Some(b'B'), &[b"\0", name.as_bytes(), b"\0\0\0\0\0\0"].concat())),
        1 => (names.clone(), 0usize..200_000, 0u16..2_000).prop_map(|(name, length, n_values)| {
            let value = [(length as u32).to_be_bytes().as_slice(), &vec![b'x'; length]].concat();
            let values = [value, [255u8; 4].repeat(usize::from(n_values))].concat();
            let count = (n_values + 1).to_be_bytes();
            framed(Some(b'B'), &[b"\0", name.as_bytes(), b"\0\0", &count, &values, b"\0\0"].concat())
        }),
        3 => (any::<u32>(), names.clone())
            .prop_map(|(n_rows, name)| framed(Some(b'E'), &[name.as_bytes(), &n_rows.to_be_bytes()].concat())),
        3 => (names, proptest::sample::select(vec![b'S', b'P']))
            .prop_map(|(name, of)| framed(Some(b'D'), &[&[of], name.as_bytes()].concat())),
        3 => Just(framed(Some(b'S'), b"")),
        1 => (any::<u8>(), tail.clone()).prop_map(|(kind, body)| framed(Some(kind), &body)),
        1 => tail,
    ];
    proptest::collection::vec(message, 1..12).prop_map(|messages| messages.concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_make_no_sense_after_a_login() {
    let served = serve(PEOPLE).await;
    let mut runner = TestRunner::new(Config::default());
    let strategy = messages();
    for _ in 0..150 {
        let mut bytes = strategy.new_tree(&mut runner).unwrap().current();
        let flips = proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4);
        for (place, byte) in flips.new_tree(&mut runner).unwrap().current() {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        raw::log_in(&served).await.say(&bytes).await;
    }
    is_up(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_left_alone_end() {
    let served = serve_as(PEOPLE, |configuration| {
        configuration.startup_timeout = 1;
        configuration.idle_timeout = 1;
    })
    .await;
    let mut half_open = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    half_open.write_all(&startup(ANALYST)[..9]).await.unwrap();
    let mut half_logged_in = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    half_logged_in.write_all(&startup(ANALYST)).await.unwrap();
    let half_said = {
        let mut raw = raw::log_in(&served).await;
        raw.write(&[b'Q', 0, 0, 1, 0, b'S']).await;
        raw.into_stream()
    };
    for mut stream in [half_open, half_logged_in, half_said] {
        let mut heard = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut heard)).await;
        assert!(ended.is_ok(), "the server waits for ever");
    }
    is_up(&served).await;
}
