//! What a member's certificate has to name.

use rustls::pki_types::CertificateDer;
use std::fmt;
use std::str::FromStr;
use webpki::EndEntityCert;

/// Stands in a pattern for the name that a member advertises.
const NAME: &str = "{name}";
/// The longest label of a DNS name, in bytes.
const LABEL_BYTES_MAX: usize = 63;
const PATTERN_BYTES_MAX: usize = 1024;

/// The name that a member's certificate has to have, as a DNS name or a URI, with `{name}` for the name that
/// the member advertises.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SanPattern(String);

/// Why a certificate does not belong to a name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongName {
    /// The name is no label, so no pattern can be made of it.
    #[error(
        "{0:?} cannot stand in a certificate's name; write a --name of 1 to {LABEL_BYTES_MAX} letters, \
         digits and hyphens"
    )]
    NoLabel(String),
    /// The certificate has other names.
    #[error(
        "the certificate does not name {wanted:?} but {found:?}; issue one with the subject alternative name \
         {wanted:?}, or change --peer-san"
    )]
    Other {
        /// What the pattern makes of the name.
        wanted: String,
        /// What the certificate has: a few DNS names and URIs.
        found: Vec<String>,
    },
    /// It cannot be read.
    #[error("the certificate cannot be read: {0}")]
    Unreadable(webpki::Error),
}

/// How many names an error shows.
const NAMES_SHOWN: usize = 4;

impl Default for SanPattern {
    /// The name itself.
    fn default() -> SanPattern {
        SanPattern(NAME.to_owned())
    }
}

impl FromStr for SanPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<SanPattern, String> {
        let rest = text.replacen(NAME, "", 1);
        if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
            return Err(format!("write 1 to {PATTERN_BYTES_MAX} bytes, such as {{name}}.web.default.svc"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a certificate's name has neither spaces nor letters beyond ASCII".to_owned());
        }
        if rest.contains(['{', '}', '*']) {
            return Err("write {name} once at most, and no other braces and no asterisk".to_owned());
        }
        Ok(SanPattern(text.to_owned()))
    }
}

impl fmt::Display for SanPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl SanPattern {
    /// Whether a certificate says which member has it. Otherwise it says that a member has it.
    pub fn binds_name(&self) -> bool {
        self.0.contains(NAME)
    }

    /// Says whether a certificate belongs to a member of this name. DNS names are compared without regard to
    /// case, URIs exactly. A wildcard in the certificate matches nothing.
    ///
    /// # Errors
    /// If it does not.
    pub(super) fn check(&self, certificate: &CertificateDer<'_>, name: &str) -> Result<(), WrongName> {
        let wanted = self.of(name)?;
        let certificate = EndEntityCert::try_from(certificate).map_err(WrongName::Unreadable)?;
        let dns = certificate.valid_dns_names().any(|dns| dns.eq_ignore_ascii_case(&wanted));
        if dns || certificate.valid_uri_names().any(|uri| uri == wanted) {
            return Ok(());
        }
        let found = certificate.valid_dns_names().chain(certificate.valid_uri_names());
        Err(WrongName::Other { wanted, found: found.take(NAMES_SHOWN).map(str::to_owned).collect() })
    }

    /// What a certificate of this member has to name.
    fn of(&self, name: &str) -> Result<String, WrongName> {
        let label = (1..=LABEL_BYTES_MAX).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if self.binds_name() && !label {
            return Err(WrongName::NoLabel(name.to_owned()));
        }
        Ok(self.0.replacen(NAME, name, 1))
    }
}
