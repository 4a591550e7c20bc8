//! TLS: certificate and key files, and channel binding.
//!
//! # Guarantee
//! A file that is missing, empty or does not fit the other one is an error at the start. Files that change while the server
//! runs are read again at the next handshake; if they can't be used, the server warns and keeps the certificate that it has.
//! The server never falls back to plain text.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use ring::digest;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// The TLS settings of a server.
#[derive(Clone)]
pub struct Tls(Arc<Files>);

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<(Written, Arc<Identity>)>,
}

/// When the files of certificate and key were last changed, and how long they are.
type Written = [Option<(SystemTime, u64)>; 2];

/// A certificate and its key, as they were read.
pub(crate) struct Identity {
    pub(crate) acceptor: TlsAcceptor,
    /// The hash of the certificate for channel binding (`tls-server-end-point`); `None` if its signature algorithm has
    /// no single hash.
    pub(crate) binding: Option<Arc<[u8]>>,
}

/// Why TLS can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum TlsError {
    #[error("{}: the file has no {what}: {reason}", .path.display())]
    File { path: PathBuf, what: &'static str, reason: String },
    #[error("{} and {} can't be used together: {source}", .certificate.display(), .key.display())]
    Pair { certificate: PathBuf, key: PathBuf, source: rustls::Error },
}

impl Tls {
    /// Reads a chain of certificates and the key of the first one, both in PEM format.
    ///
    /// # Errors
    /// If a file is not valid, or they do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let current = Mutex::new((written(certificate, key), Arc::new(Identity::read(certificate, key)?)));
        Ok(Tls(Arc::new(Files { certificate: certificate.to_owned(), key: key.to_owned(), current })))
    }

    /// The certificate and key as they are now.
    pub(crate) fn current(&self) -> Arc<Identity> {
        let Files { certificate, key, current } = self.0.as_ref();
        let now = written(certificate, key);
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 != now {
            // Remember the state of files that can't be used, too, so that they are tried once and not at each handshake.
            current.0 = now;
            match Identity::read(certificate, key) {
                Ok(identity) => {
                    eprintln!("read the TLS certificate again");
                    current.1 = Arc::new(identity);
                }
                Err(problem) => eprintln!("warning: the TLS certificate stays as it was: {problem}"),
            }
        }
        Arc::clone(&current.1)
    }
}

fn written(certificate: &Path, key: &Path) -> Written {
    [certificate, key].map(|file| {
        let metadata = std::fs::metadata(file).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}

impl Identity {
    fn read(certificate: &Path, key: &Path) -> Result<Identity, TlsError> {
        let wrong = |path: &Path, what, reason: String| TlsError::File { path: path.to_owned(), what, reason };
        let no_certificate = |reason: String| wrong(certificate, "certificate", reason);
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|error| no_certificate(error.to_string()))?;
        let first = chain.first().ok_or_else(|| no_certificate("it is empty".to_owned()))?;
        let binding = binding(first);
        let private =
            PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, "private key", error.to_string()))?;
        let mismatch = |source| TlsError::Pair { certificate: certificate.to_owned(), key: key.to_owned(), source };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
            .map_err(mismatch)?;
        Ok(Identity { acceptor: TlsAcceptor::from(Arc::new(config)), binding })
    }
}

/// The hash of a certificate with the hash function of its signature, or with SHA-256 if that one is weaker (RFC 5929).
fn binding(certificate: &CertificateDer<'_>) -> Option<Arc<[u8]>> {
    let algorithm: &digest::Algorithm = match signature_algorithm(certificate)? {
        // PKCS #1 with MD5, SHA-1 and SHA-256; ECDSA with SHA-1 and SHA-256.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 4 | 5 | 11]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 2] => &digest::SHA256,
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 12] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 3] => {
            &digest::SHA384
        }
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 13] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 4] => {
            &digest::SHA512
        }
        // Other algorithms, such as Ed25519 and PSS, have no single hash, so there is no binding.
        _ => return None,
    };
    Some(digest::digest(algorithm, certificate).as_ref().into())
}

/// The object identifier of a certificate's signature: `SEQUENCE { contents, SEQUENCE { OID, ... }, signature }`.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OID: u8 = 0x06;
    let (outer, _) = element(certificate, SEQUENCE)?;
    let (_, after_contents) = element(outer, SEQUENCE)?;
    let (algorithm, _) = element(after_contents, SEQUENCE)?;
    Some(element(algorithm, OID)?.0)
}

/// The content of the first DER element, and the rest.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(length)?;
    (found == tag).then_some((content, after))
}
