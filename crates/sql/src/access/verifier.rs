//! [`Verifier`]: checks SCRAM-SHA-256 logins without knowing the password (RFC 5802 and 7677).
//!
//! # Guarantee
//! A verifier contains a salt and two keys. Neither the password nor the client's proof can be computed from them. The
//! text form is PostgreSQL's: `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2, rand};

use super::AccessError;

/// How often a password is hashed.
pub const ITERATIONS: NonZeroU32 = NonZeroU32::new(16_384).expect("it is not zero");
const SALT_LEN: usize = 16;
const PREFIX: &str = "SCRAM-SHA-256$";

/// Checks the logins of one user.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    /// How often the password is hashed.
    pub iterations: NonZeroU32,
    /// The salt of the hash.
    pub salt: Vec<u8>,
    /// The hash of the key that a client proves to have.
    pub stored_key: [u8; 32],
    /// The key that the server proves to have.
    pub server_key: [u8; 32],
}

impl Verifier {
    /// The verifier for a password, with a new salt.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn of_password(password: &str) -> Result<Verifier, AccessError> {
        let salt: [u8; SALT_LEN] = random_bytes()?;
        Ok(Verifier::of_salted(password, &salt, ITERATIONS))
    }

    fn of_salted(password: &str, salt: &[u8], iterations: NonZeroU32) -> Verifier {
        // A password that can't be normalized is used unchanged, as in PostgreSQL.
        let prepared = stringprep::saslprep(password).unwrap_or(password.into());
        let mut salted = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, prepared.as_bytes(), &mut salted);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = sha256(&client_key);
        Verifier { iterations, salt: salt.to_vec(), stored_key, server_key: sign(&salted, b"Server Key") }
    }

    /// A verifier for an unknown name. No password fits it, and its salt looks like any other and is always the same
    /// for one name.
    pub(super) fn of_nobody(secret: &[u8; 32], name: &str) -> Verifier {
        let part = |purpose: &str| sign(secret, format!("{purpose} {name}").as_bytes());
        Verifier {
            iterations: ITERATIONS,
            salt: part("salt")[..SALT_LEN].to_vec(),
            stored_key: part("stored key"),
            server_key: part("server key"),
        }
    }
}

/// Does not print the keys.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verifier({} iterations)", self.iterations)
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verifier { iterations, salt, stored_key, server_key } = self;
        write!(f, "{PREFIX}{iterations}:{}${}:{}", encode(salt), encode(stored_key), encode(server_key))
    }
}

/// The text is not a verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a SCRAM-SHA-256 verifier")]
pub struct NoVerifier;

impl FromStr for Verifier {
    type Err = NoVerifier;

    fn from_str(text: &str) -> Result<Verifier, NoVerifier> {
        let parse = || {
            let (hashed_by, keys) = text.strip_prefix(PREFIX)?.split_once('$')?;
            let (iterations, salt) = hashed_by.split_once(':')?;
            let (stored_key, server_key) = keys.split_once(':')?;
            Some(Verifier {
                iterations: iterations.parse().ok()?,
                salt: STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?,
                stored_key: decode_32(stored_key)?,
                server_key: decode_32(server_key)?,
            })
        };
        parse().ok_or(NoVerifier)
    }
}

/// Random bytes from the operating system.
///
/// # Errors
/// If the system provides none.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], AccessError> {
    let mut bytes = [0; N];
    let random = rand::SystemRandom::new();
    rand::SecureRandom::fill(&random, &mut bytes).map_err(|_| AccessError::NoRandomness)?;
    Ok(bytes)
}

pub(super) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn decode_32(text: &str) -> Option<[u8; 32]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn sign(key: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677: user `user`, password `pencil`.
    #[test]
    fn the_keys_are_those_of_the_standard() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::of_salted("pencil", &salt, NonZeroU32::new(4096).unwrap());
        let message = "n=user,r=rOprNGfwEbeRWgbNEkqO,\
                       r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
                       c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let signature = sign(&verifier.server_key, message.as_bytes());
        assert_eq!(encode(&signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let proof = decode_32("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=").unwrap();
        let of_client = sign(&verifier.stored_key, message.as_bytes());
        let client_key: Vec<u8> = proof.iter().zip(of_client).map(|(proof, own)| proof ^ own).collect();
        assert_eq!(sha256(&client_key), verifier.stored_key);
    }

    #[test]
    fn a_verifier_is_read_as_it_is_written() {
        let verifier = Verifier::of_salted("correct horse", b"0123456789abcdef", NonZeroU32::new(2).unwrap());
        assert_eq!(verifier.to_string().parse(), Ok(verifier));
        for wrong in ["", "SCRAM-SHA-256$", "SCRAM-SHA-256$0:AA==$AA==:AA==", "md5abc", "SCRAM-SHA-256$1:$:"] {
            assert_eq!(wrong.parse::<Verifier>(), Err(NoVerifier), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_name_always_has_the_same_salt_and_another_name_another() {
        let of = |name| Verifier::of_nobody(&[7; 32], name);
        assert_eq!(of("ann"), of("ann"));
        assert_ne!(of("ann").salt, of("bob").salt);
        assert_eq!(of("ann").salt.len(), Verifier::of_password("correct horse").unwrap().salt.len());
    }
}
