//! An authority that signs certificates of members.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use std::path::{Path, PathBuf};

/// One that signs.
pub struct Authority(pub CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
pub struct Issued {
    pub cert: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Authority {
        Authority(CertifiedIssuer::self_signed(issuer(), p256()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.as_ref().pem()
    }

    /// A member's certificate with these names, URIs among them, with `change` made to it.
    pub fn issue(
        &self,
        key: &KeyPair,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Issued {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names
            .iter()
            .map(|name| match name.contains("://") {
                true => SanType::URI((*name).try_into().unwrap()),
                false => SanType::DnsName((*name).try_into().unwrap()),
            })
            .collect();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        Issued { cert: params.signed_by(key, &self.0).unwrap().pem(), key: key.serialize_pem() }
    }
}

/// What an authority says of itself.
pub fn issuer() -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// A key as cert-manager's documents recommend.
pub fn p256() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
}

/// Writes the three files into a folder, and says where they are: certificate, key, authorities.
pub fn write(folder: &Path, issued: &Issued, authorities: &[&Authority]) -> [PathBuf; 3] {
    let paths = ["tls.crt", "tls.key", "ca.crt"].map(|name| folder.join(name));
    let bundle: String = authorities.iter().map(|authority| authority.pem()).collect();
    for (path, text) in paths.iter().zip([&issued.cert, &issued.key, &bundle]) {
        // As a mounted Secret changes: a reader never sees half a file.
        let new = path.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, path).unwrap();
    }
    paths
}
