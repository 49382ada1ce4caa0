//! The channel below the frames: in clear, or authenticated and encrypted.
//!
//! TLS 1.3 by rustls with ring. Both sides prove that they hold a key that the other one accepts, with raw
//! public keys (RFC 7250). The keys come from a shared secret and the election's name, so two elections never
//! meet. There are no tickets, no early data, and no names of servers. Nothing of a peer's is parsed before
//! its proof.
//!
//! A secret proves *a* member, not *which* one.

mod credentials;
mod handshake;
mod keys;
mod secret;
mod stream;
#[cfg(test)]
mod tests;

pub use credentials::{Credentials, PeerAuth, Reading};
pub use handshake::{Handshake, HandshakeError, Progress, looks_sealed, open};
pub use keys::Keys;
pub use secret::{SECRET_BYTES_MIN, SECRETS_MAX, SecretError, read};
pub use stream::{Channel, Got};

/// What both sides have to name: another protocol's TLS is no peer.
const PROTOCOL: &[u8] = b"bellwether/1";
/// The most bytes of one side's part of a handshake, its first frame included. Raw public keys need 400.
pub const HANDSHAKE_BYTES_MAX: usize = 2 * 1024;
