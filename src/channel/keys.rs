//! The keys that a process proves itself with, and those that it accepts.

use super::san::{SanPattern, WrongName};
use super::{HANDSHAKE_BYTES_MAX, PROTOCOL};
use ::ring::digest::{SHA256, digest};
use ::ring::hkdf::{HKDF_SHA256, Salt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, ResolvesClientCert, Resumption};
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};
use std::sync::Arc;
use std::time::Duration;

/// RFC 8410: what stands before the 32 bytes of an Ed25519 key in PKCS #8.
const PKCS8_HEAD: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
const KEY_BYTES: usize = 32;
/// What the derivation of a key is for.
const PURPOSE: &[u8] = b"bellwether peer key v1";
/// How many bytes of its digest name a key to people.
const FINGERPRINT_BYTES: usize = 8;

/// One set of keys, made of one reading of the files.
#[derive(Debug)]
pub struct Keys {
    pub(super) server: Arc<ServerConfig>,
    pub(super) client: Arc<ClientConfig>,
    /// The most bytes of one side's part of a handshake.
    pub(super) handshake_bytes_max: usize,
    /// What a peer's certificate has to name; none: its key says nothing about its name.
    pub(super) san: Option<SanPattern>,
    pub(super) expires: Option<Duration>,
    /// The fingerprints of the certificates between this process's own and an authority.
    pub(super) intermediates: Vec<String>,
    accepted: Vec<String>,
}

/// What a side shows of itself.
pub(super) struct Resolvers {
    pub(super) server: Arc<dyn ResolvesServerCert>,
    pub(super) client: Arc<dyn ResolvesClientCert>,
}

impl Keys {
    /// The keys of these secrets in this election. The first one is sent, all are accepted.
    ///
    /// # Errors
    /// If the cryptography refuses a key, which would be a bug.
    pub fn of_secrets(secrets: &[Vec<u8>], election: &str) -> Result<Keys, Error> {
        let keys = secrets.iter().map(|secret| derive(secret, election)).collect::<Result<Vec<_>, _>>()?;
        let spkis: Vec<Vec<u8>> =
            keys.iter().filter_map(|key| key.cert.first()).map(|spki| spki.to_vec()).collect();
        let first = Arc::new(keys.into_iter().next().ok_or(Error::NoCertificatesPresented)?);
        let provider = provider();
        let accepted = spkis.iter().map(|spki| fingerprint(spki)).collect();
        let members = Arc::new(Members { spkis, algorithms: provider.signature_verification_algorithms });
        let resolvers = Resolvers {
            server: Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::clone(&first))),
            client: Arc::new(AlwaysResolvesClientRawPublicKeys::new(first)),
        };
        Keys::new(provider, Arc::clone(&members) as _, members, resolvers, accepted)
    }

    /// TLS 1.3 alone, without tickets, early data and names of servers.
    pub(super) fn new(
        provider: Arc<CryptoProvider>,
        clients: Arc<dyn ClientCertVerifier>,
        servers: Arc<dyn ServerCertVerifier>,
        resolvers: Resolvers,
        accepted: Vec<String>,
    ) -> Result<Keys, Error> {
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(resolvers.server);
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];

        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(servers)
            .with_client_cert_resolver(resolvers.client);
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Keys {
            server: Arc::new(server),
            client: Arc::new(client),
            handshake_bytes_max: HANDSHAKE_BYTES_MAX,
            san: None,
            expires: None,
            intermediates: Vec::new(),
            accepted,
        })
    }

    /// The fingerprints of the keys that this process accepts, or of its certificate and of the authorities:
    /// 16 hexadecimal digits each. It sends the first.
    pub fn fingerprints(&self) -> &[String] {
        &self.accepted
    }

    /// Whether other keys are the same, and shown with the same chain.
    pub(super) fn are(&self, other: &Keys) -> bool {
        (&self.accepted, &self.intermediates) == (&other.accepted, &other.intermediates)
    }

    /// When the certificate ends, since the Unix epoch; none: the keys are of a secret, and do not end.
    pub fn expires(&self) -> Option<Duration> {
        self.expires
    }

    /// Says whether a peer that has proved itself with this certificate may have this name.
    ///
    /// # Errors
    /// If the certificate is another member's.
    pub(super) fn may_be_named(
        &self,
        proof: Option<&[CertificateDer<'_>]>,
        name: &str,
    ) -> Result<(), WrongName> {
        match (&self.san, proof.and_then(|chain| chain.first())) {
            (None, _) => Ok(()),
            (Some(san), Some(leaf)) => san.check(leaf, name),
            (Some(_), None) => Err(WrongName::Unreadable(webpki::Error::BadDer)),
        }
    }
}

/// The cryptography: ring's, without the groups that it does not need.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { kx_groups: vec![ring::kx_group::X25519], ..ring::default_provider() })
}

/// The key of a secret in an election: another election has another key.
fn derive(secret: &[u8], election: &str) -> Result<CertifiedKey, Error> {
    let mut pkcs8 = PKCS8_HEAD.to_vec();
    pkcs8.resize(PKCS8_HEAD.len() + KEY_BYTES, 0);
    Salt::new(HKDF_SHA256, &[])
        .extract(secret)
        .expand(&[PURPOSE, election.as_bytes()], HKDF_SHA256)
        .and_then(|material| material.fill(&mut pkcs8[PKCS8_HEAD.len()..]))
        .map_err(|_| Error::General("no key could be derived".to_owned()))?;
    let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8))?;
    let spki = key.public_key().ok_or_else(|| Error::General("the key has no public part".to_owned()))?;
    let spki = CertificateDer::from(spki.to_vec());
    Ok(CertifiedKey::new(vec![spki], key))
}

/// How people are shown a key or a certificate.
pub(super) fn fingerprint(spki: &[u8]) -> String {
    digest(&SHA256, spki).as_ref().iter().take(FINGERPRINT_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// Accepts a peer that holds one of these keys.
#[derive(Debug)]
struct Members {
    spkis: Vec<Vec<u8>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Members {
    const RAW: bool = true;

    fn schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn accept(&self, spki: &CertificateDer<'_>, more: &[CertificateDer<'_>]) -> Result<(), Error> {
        let known = more.is_empty() && self.spkis.iter().any(|known| known.as_slice() == spki.as_ref());
        if known { Ok(()) } else { Err(CertificateError::ApplicationVerificationFailure.into()) }
    }

    fn signed(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(spki.as_ref());
        verify_tls13_signature_with_raw_key(message, &spki, signature, &self.algorithms)
    }
}

/// What verifiers of either side answer alike: no TLS 1.2. They have `signed`, `schemes` and `RAW`.
macro_rules! tls_13_alone {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.2 is not spoken here".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            shown: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.signed(message, shown, signature)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.schemes()
        }

        fn requires_raw_public_keys(&self) -> bool {
            Self::RAW
        }
    };
}
pub(super) use tls_13_alone;

impl ClientCertVerifier for Members {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        spki: &CertificateDer<'_>,
        more: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.accept(spki, more).map(|()| ClientCertVerified::assertion())
    }

    tls_13_alone!();
}

impl ServerCertVerifier for Members {
    fn verify_server_cert(
        &self,
        spki: &CertificateDer<'_>,
        more: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.accept(spki, more).map(|()| ServerCertVerified::assertion())
    }

    tls_13_alone!();
}
