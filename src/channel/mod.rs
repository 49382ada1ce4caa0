//! The channel below the frames: in clear, or authenticated and encrypted.
//!
//! TLS 1.3 by rustls with ring, without tickets, early data and names of servers. Nothing of a peer's is
//! parsed before its proof, which is one of two kinds:
//!
//! - A key that comes from a shared secret and the election's name, so that two elections never meet. It is a
//!   raw public key (RFC 7250). It proves *a* member, not *which* one.
//! - A certificate of an accepted authority. The name that a member advertises has to be in it, so it proves
//!   *which* one.

mod certificate;
mod credentials;
mod handshake;
mod keys;
mod san;
mod secret;
mod stream;
#[cfg(test)]
mod tests;

pub use certificate::{CertificateFiles, FilesError};
pub use credentials::{Credentials, PeerAuth, ProofError, ProofFiles, Reading};
pub use handshake::{Handshake, HandshakeError, Progress, looks_sealed, open};
pub use keys::Keys;
pub use san::{SanPattern, WrongName};
pub use secret::{SECRET_BYTES_MIN, SECRETS_MAX, SecretError, read};
pub use stream::{Channel, Got};

/// What both sides have to name: another protocol's TLS is no peer.
const PROTOCOL: &[u8] = b"bellwether/1";
/// The most bytes of one side's part of a handshake with raw public keys. They need 400.
pub const HANDSHAKE_BYTES_MAX: usize = 2 * 1024;
/// The most bytes of its first frame, which follows. With the longest announced values it has less than 4
/// KiB.
const FIRST_FRAME_BYTES_MAX: usize = 5 * 1024;
