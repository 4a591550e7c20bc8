//! [`Scram`]: the server's side of a SCRAM-SHA-256 login (RFC 5802, 7677), with channel binding over TLS (RFC 5929).
//!
//! # Guarantee
//! An unknown user goes through the same steps and gets the same error as a user with a wrong password. Proofs are
//! compared in constant time. A client that supports channel binding and believes that the server does not is refused,
//! because somebody between them must have removed the offer.
//! # Deviations
//! The name in the client's first message is ignored, as in PostgreSQL, because the startup message names the user.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kohort_sql::access::{Verifier, random_bytes};
use ring::{digest, hmac};
use subtle::ConstantTimeEq;

/// The mechanism without channel binding.
pub(crate) const PLAIN: &str = "SCRAM-SHA-256";
/// The mechanism with channel binding.
pub(crate) const BOUND: &str = "SCRAM-SHA-256-PLUS";
const BINDING: &str = "tls-server-end-point";

/// Why a login failed. No variant reveals whether the user exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoginError {
    #[error("malformed login message")]
    Malformed,
    #[error("this login mechanism is not offered")]
    Mechanism,
    #[error("wrong channel binding: somebody may be intercepting the connection")]
    Binding,
    #[error("password authentication failed")]
    Wrong,
    #[error("the system provides no random bytes")]
    NoRandomness,
}

/// A login after the server's first message.
pub(crate) struct Scram {
    verifier: Verifier,
    client_first_bare: String,
    server_first: String,
    nonce: String,
    /// The channel binding that the client must send.
    channel: String,
}

/// The mechanisms that are offered over a channel with this binding.
pub(crate) fn mechanisms(binding: Option<&[u8]>) -> Vec<String> {
    let offered = binding.map(|_| BOUND).into_iter().chain([PLAIN]);
    offered.map(str::to_owned).collect()
}

impl Scram {
    /// Reads the client's first message, and returns the server's.
    pub(crate) fn start(
        mechanism: &str,
        message: &[u8],
        verifier: Verifier,
        binding: Option<&[u8]>,
    ) -> Result<(Scram, String), LoginError> {
        let message = std::str::from_utf8(message).map_err(|_| LoginError::Malformed)?;
        let (flag, rest) = message.split_once(',').ok_or(LoginError::Malformed)?;
        let (authorize_as, bare) = rest.split_once(',').ok_or(LoginError::Malformed)?;
        // Logging in on behalf of another user, and mandatory extensions, are not supported.
        if !authorize_as.is_empty() || bare.starts_with("m=") {
            return Err(LoginError::Malformed);
        }
        let header = format!("{flag},,");
        let channel = match (mechanism, flag.strip_prefix("p="), binding) {
            (BOUND, Some(BINDING), Some(binding)) => [header.as_bytes(), binding].concat(),
            // The client supports binding and believes that we do not, although we offered it.
            (PLAIN, None, Some(_)) if flag == "y" => return Err(LoginError::Binding),
            (PLAIN, None, _) if flag == "n" || flag == "y" => header.into_bytes(),
            _ => return Err(LoginError::Mechanism),
        };
        let client_nonce = bare.split(',').find_map(|part| part.strip_prefix("r=")).unwrap_or_default();
        if client_nonce.is_empty() || !client_nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(LoginError::Malformed);
        }
        let own: [u8; 18] = random_bytes().map_err(|_| LoginError::NoRandomness)?;
        let nonce = format!("{client_nonce}{}", STANDARD.encode(own));
        let iterations: NonZeroU32 = verifier.iterations;
        let server_first = format!("r={nonce},s={},i={iterations}", STANDARD.encode(&verifier.salt));
        let scram = Scram {
            verifier,
            client_first_bare: bare.to_owned(),
            server_first: server_first.clone(),
            nonce,
            channel: STANDARD.encode(channel),
        };
        Ok((scram, server_first))
    }

    /// Reads the client's last message, and returns the server's, which proves that the server has the verifier.
    pub(crate) fn finish(self, message: &[u8]) -> Result<String, LoginError> {
        let message = std::str::from_utf8(message).map_err(|_| LoginError::Malformed)?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or(LoginError::Malformed)?;
        let (channel, nonce) = without_proof.split_once(',').ok_or(LoginError::Malformed)?;
        if channel.strip_prefix("c=") != Some(self.channel.as_str()) {
            return Err(LoginError::Binding);
        }
        if nonce.strip_prefix("r=") != Some(self.nonce.as_str()) {
            return Err(LoginError::Malformed);
        }
        let proof: [u8; 32] =
            STANDARD.decode(proof).ok().and_then(|proof| proof.try_into().ok()).ok_or(LoginError::Malformed)?;
        let said = format!("{},{},{without_proof}", self.client_first_bare, self.server_first);
        let signature = sign(&self.verifier.stored_key, said.as_bytes());
        let mut client_key = [0; 32];
        for (byte, (proof, signature)) in client_key.iter_mut().zip(proof.iter().zip(signature)) {
            *byte = proof ^ signature;
        }
        let stored_key = digest::digest(&digest::SHA256, &client_key);
        if !bool::from(stored_key.as_ref().ct_eq(&self.verifier.stored_key)) {
            return Err(LoginError::Wrong);
        }
        Ok(format!("v={}", STANDARD.encode(sign(&self.verifier.server_key, said.as_bytes()))))
    }
}

fn sign(key: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verifier() -> Verifier {
        Verifier::of_password("correct horse").unwrap()
    }

    fn start(mechanism: &str, message: &str, binding: Option<&[u8]>) -> Result<(Scram, String), LoginError> {
        Scram::start(mechanism, message.as_bytes(), verifier(), binding)
    }

    #[test]
    fn a_client_that_was_told_of_no_binding_is_refused_where_there_is_one() {
        assert!(matches!(start(PLAIN, "y,,n=,r=abc", Some(b"hash")), Err(LoginError::Binding)));
        assert!(start(PLAIN, "y,,n=,r=abc", None).is_ok());
        assert!(start(PLAIN, "n,,n=,r=abc", Some(b"hash")).is_ok());
    }

    #[test]
    fn a_mechanism_and_what_is_said_of_the_channel_must_agree() {
        for (mechanism, message, binding) in [
            (BOUND, "n,,n=,r=abc", Some(b"hash".as_slice())),
            (BOUND, "p=tls-unique,,n=,r=abc", Some(b"hash")),
            (BOUND, "p=tls-server-end-point,,n=,r=abc", None),
            (PLAIN, "p=tls-server-end-point,,n=,r=abc", Some(b"hash")),
            ("PLAIN", "n,,n=,r=abc", None),
        ] {
            assert_eq!(start(mechanism, message, binding).err(), Some(LoginError::Mechanism), "{mechanism} {message}");
        }
    }

    #[test]
    fn malformed_logins_are_refused() {
        for message in ["", "n", "n,", "n,,", "n,,n=,r=", "n,,m=x,n=,r=abc", "n,a=root,n=,r=abc", "n,,n=,r=a c"] {
            assert_eq!(start(PLAIN, message, None).err(), Some(LoginError::Malformed), "{message}");
        }
        let finish = |message: &str| start(PLAIN, "n,,n=,r=abc", None).unwrap().0.finish(message.as_bytes());
        assert_eq!(finish("c=biws,r=abc,p=AAAA"), Err(LoginError::Malformed));
        assert_eq!(finish("c=eSws,r=abc,p=AAAA"), Err(LoginError::Binding));
        assert_eq!(finish(""), Err(LoginError::Malformed));
    }

    #[test]
    fn a_wrong_proof_is_wrong_and_an_old_nonce_no_login() {
        let (scram, first) = start(PLAIN, "n,,n=,r=abc", None).unwrap();
        let nonce = first.split(',').next().unwrap();
        let proof = STANDARD.encode([7; 32]);
        assert_eq!(scram.finish(format!("c=biws,{nonce},p={proof}").as_bytes()), Err(LoginError::Wrong));
        let (scram, _) = start(PLAIN, "n,,n=,r=abc", None).unwrap();
        assert_eq!(scram.finish(format!("c=biws,{nonce},p={proof}").as_bytes()), Err(LoginError::Malformed));
    }
}
