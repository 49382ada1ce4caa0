//! A certificate of this process, its key, and the authorities that sign the certificates of members.

use super::keys::{Keys, Resolvers, fingerprint, provider, tls_13_alone};
use super::san::{SanPattern, WrongName};
use super::secret::bounded;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The longest file, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// How many authorities a file may hold. Whatever one of them signs is a member, so a system's bundle is
/// refused.
const AUTHORITIES_MAX: usize = 16;
/// The most bytes of one side's part of a handshake: a chain of a few certificates.
const HANDSHAKE_BYTES_MAX: usize = 16 * 1024;
/// A time after the end of each certificate, in seconds.
const AFTER_ALL: u64 = 1 << 40;

/// Where a process finds its certificate, and what it asks of those of others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateFiles {
    /// The certificate of this process and those between it and an authority (`--peer-cert`), PEM.
    pub cert: PathBuf,
    /// Its private key (`--peer-key`), PEM.
    pub key: PathBuf,
    /// The accepted authorities (`--peer-ca`), PEM.
    pub ca: PathBuf,
    /// What a member's certificate has to name (`--peer-san`).
    pub san: SanPattern,
    /// The name of this process.
    pub name: String,
}

/// Why the files are of no use. No message shows anything of the key.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// One of them cannot be read.
    #[error("{flag} {} cannot be read: {source}; make it readable for this process", path.display())]
    Unreadable {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// One of them is longer than any such file.
    #[error("{flag} {} is longer than {FILE_BYTES_MAX} bytes; it holds {what} in PEM", path.display())]
    TooLong {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What it is to hold.
        what: &'static str,
    },
    /// One of them does not hold what it is to hold.
    #[error("{flag} {} holds no {what} in PEM: {why}", path.display())]
    NoPem {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What it is to hold.
        what: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An authority cannot be used, or there are too many.
    #[error(
        "--peer-ca {} is of no use: {why}; name 1 to {AUTHORITIES_MAX} authorities, which sign for \
         members alone",
        path.display()
    )]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The key is not the certificate's, or of an unknown kind.
    #[error(
        "--peer-key {} does not fit --peer-cert: {source}; give the key that the certificate was issued for: \
         ECDSA, Ed25519, or RSA",
        path.display()
    )]
    Key {
        /// The file.
        path: PathBuf,
        /// What the cryptography says.
        source: Error,
    },
    /// Other members would not accept the certificate.
    #[error(
        "members that trust --peer-ca refuse the certificate in {}: {source}. It needs the usages server \
         auth and client auth, and a chain to one of the authorities",
        path.display()
    )]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Error,
    },
    /// Other members would not accept it for this process's name.
    #[error("--peer-cert {} is not this member's: {source}", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// Why.
        source: WrongName,
    },
}

impl Keys {
    /// Reads the files. They have to be good enough for other members with the same ones.
    ///
    /// # Errors
    /// Where a file cannot be read, or its content is of no use.
    pub fn of_certificate(files: &CertificateFiles, now: UnixTime) -> Result<Keys, FilesError> {
        let provider = provider();
        let chain: Vec<CertificateDer<'static>> = certificates("--peer-cert", &files.cert)?;
        let authorities = certificates("--peer-ca", &files.ca)?;
        let key = private_key(&files.key)?;
        let fingerprints = chain.iter().take(1).chain(&authorities).map(|der| fingerprint(der)).collect();
        let intermediates = chain.iter().skip(1).map(|der| fingerprint(der)).collect();
        let unusable = |why: String| FilesError::Authorities { path: files.ca.clone(), why };
        if authorities.len() > AUTHORITIES_MAX {
            return Err(unusable(format!("it holds {}", authorities.len())));
        }
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority).map_err(|error| unusable(error.to_string()))?;
        }
        let roots = Arc::new(roots);
        // Strangers are not told which authorities count.
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .clear_root_hint_subjects()
            .build()
            .map_err(|error: VerifierBuilderError| unusable(error.to_string()))?;
        let algorithms = provider.signature_verification_algorithms;
        let servers = Arc::new(Authorities { roots, algorithms });

        let wrong_key = |source| FilesError::Key { path: files.key.clone(), source };
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(wrong_key)?;
        let expires = acceptable(files, &certified.cert, &*clients, &servers, now)?;

        let own = Arc::new(SingleCertAndKey::from(certified));
        let resolvers = Resolvers { server: Arc::clone(&own) as _, client: own };
        let mut keys = Keys::new(provider, clients, servers, resolvers, fingerprints).map_err(wrong_key)?;
        keys.handshake_bytes_max = HANDSHAKE_BYTES_MAX;
        keys.san = Some(files.san.clone());
        keys.expires = Some(expires);
        keys.intermediates = intermediates;
        Ok(keys)
    }
}

/// Says until when members that have the same files accept the certificate, since the Unix epoch.
fn acceptable(
    files: &CertificateFiles,
    chain: &[CertificateDer<'static>],
    clients: &dyn ClientCertVerifier,
    servers: &Authorities,
    now: UnixTime,
) -> Result<Duration, FilesError> {
    let refused = |source| FilesError::Refused { path: files.cert.clone(), source };
    let (leaf, between) = chain.split_first().ok_or_else(|| refused(Error::NoCertificatesPresented))?;
    clients.verify_client_cert(leaf, between, now).map_err(refused)?;
    servers.accept(leaf, between, now).map_err(refused)?;
    let wrong = |source| FilesError::Name { path: files.cert.clone(), source };
    files.san.check(leaf, &files.name).map_err(wrong)?;
    // The library says when a certificate ends only where it has ended.
    let late = UnixTime::since_unix_epoch(Duration::from_secs(AFTER_ALL));
    match clients.verify_client_cert(leaf, between, late) {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Ok(Duration::from_secs(not_after.as_secs()))
        }
        Err(error) => Err(refused(error)),
        Ok(_) => Ok(Duration::from_secs(AFTER_ALL)),
    }
}

fn certificates(flag: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, FilesError> {
    let what = "certificate";
    let text = content(flag, path, what)?;
    let no_pem = |error| no_pem(flag, path, what, &error);
    let all = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>().map_err(no_pem)?;
    if all.is_empty() { Err(no_pem(pem::Error::NoItemsFound)) } else { Ok(all) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, FilesError> {
    let (flag, what) = ("--peer-key", "private key");
    let text = content(flag, path, what)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| no_pem(flag, path, what, &error))
}

/// What the library says of a file can hold all of it, a key included.
fn no_pem(flag: &'static str, path: &Path, what: &'static str, error: &pem::Error) -> FilesError {
    let why = match error {
        pem::Error::MissingSectionEnd { .. } => "a section has no line -----END …-----",
        pem::Error::IllegalSectionStart { .. } => {
            "a line -----BEGIN …----- is damaged, or lines have lost their ends"
        }
        pem::Error::Base64Decode(_) => "a section is not base64",
        pem::Error::NoItemsFound => "there is no such section",
        _ => "it is damaged",
    };
    FilesError::NoPem { flag, path: path.to_owned(), what, why }
}

fn content(flag: &'static str, path: &Path, what: &'static str) -> Result<Vec<u8>, FilesError> {
    bounded(path, FILE_BYTES_MAX)
        .map_err(|source| FilesError::Unreadable { flag, path: path.to_owned(), source })?
        .ok_or_else(|| FilesError::TooLong { flag, path: path.to_owned(), what })
}

/// Accepts a process that was dialled if one of these authorities signed its certificate. Its name is looked
/// at when its Hello arrives.
#[derive(Debug)]
struct Authorities {
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Authorities {
    const RAW: bool = false;

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn signed(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signature, &self.algorithms)
    }

    fn accept(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let leaf = ParsedCertificate::try_from(leaf)?;
        verify_server_cert_signed_by_trust_anchor(&leaf, &self.roots, between, now, self.algorithms.all)
    }
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.accept(leaf, between, now).map(|()| ServerCertVerified::assertion())
    }

    tls_13_alone!();
}
