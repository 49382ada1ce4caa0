//! Two transports, or one and a stranger, with certificates.

use super::*;
use crate::channel::{CertificateFiles, FilesError, Keys, PeerAuth, ProofFiles, Reading, open};
use crate::transport::authority::{Authority, Issued, issuer, p256, write};
use rcgen::{
    CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, KeyPair, PKCS_ED25519, date_time_ymd,
};
use rustls::pki_types::UnixTime;
use tempfile::TempDir;

/// A member's name in DNS.
const SAN: &str = "{name}.web.svc";

fn plain(_: &mut CertificateParams) {}

/// The files of one that is called this.
fn files(folder: &TempDir, name: &str, issued: &Issued, trusted: &[&Authority]) -> CertificateFiles {
    let [cert, key, ca] = write(folder.path(), issued, trusted);
    CertificateFiles { cert, key, ca, san: SAN.parse().unwrap(), name: name.to_owned() }
}

fn keys_of(name: &str, issued: &Issued, trusted: &[&Authority]) -> Result<Keys, FilesError> {
    let folder = tempfile::tempdir().unwrap();
    Keys::of_certificate(&files(&folder, name, issued, trusted), UnixTime::now())
}

fn dns(number: u128) -> String {
    format!("p{number}.web.svc")
}

/// Credentials of p1 by these files, which a test may change.
fn credentials_in(folder: &TempDir, issued: &Issued, authority: &Authority) -> Credentials {
    let proof = ProofFiles::Certificate(files(folder, "p1", issued, &[authority]));
    Credentials::open(PeerAuth::Required, Some(proof), "c").unwrap()
}

fn member(number: u128, key: &KeyPair, signer: &Authority, trusted: &[&Authority]) -> Side {
    let folder = tempfile::tempdir().unwrap();
    let issued = signer.issue(key, &[&dns(number)], plain);
    let files = files(&folder, &format!("p{number}"), &issued, trusted);
    let credentials =
        Credentials::open(PeerAuth::Required, Some(ProofFiles::Certificate(files)), "c").unwrap();
    side_with(number, "c", Ipv4Addr::LOCALHOST, SafetyCode::Majority, credentials)
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn members_with_certificates_of_one_authority_speak_whatever_their_keys() {
    let authority = Authority::new();
    // The library makes no RSA keys.
    let rsa = || KeyPair::from_pem(include_str!("../../../tests/support/rsa.pem")).unwrap();
    let ed25519 = || KeyPair::generate_for(&PKCS_ED25519).unwrap();
    for (one, other) in [(p256(), p256()), (p256(), ed25519()), (ed25519(), rsa()), (rsa(), p256())] {
        let a = member(1, &one, &authority, &[&authority]);
        let b = member(2, &other, &authority, &[&authority]);
        a.dial(b.address);
        assert_eq!((a.opened().name, b.opened().name), ("p2".to_owned(), "p1".to_owned()));
        a.transport.send(ProcessId(Uuid::from_u128(2)), b.address, &ask(7));
        assert_eq!(b.received().1, ask(7));
    }
}

#[test]
fn each_step_of_a_change_of_authorities_keeps_members_together_and_no_other_authority_does() {
    let (old, new) = (Authority::new(), Authority::new());
    let steps: [(&Authority, &[&Authority]); 4] =
        [(&old, &[&old]), (&old, &[&old, &new]), (&new, &[&old, &new]), (&new, &[&new])];
    for (i, (one, trusts_one)) in steps.iter().enumerate() {
        for (j, (other, trusts_other)) in steps.iter().enumerate().skip(i) {
            let a = member(1, &p256(), one, trusts_one);
            let b = member(2, &p256(), other, trusts_other);
            a.dial(b.address);
            if j - i <= 1 {
                a.opened();
                b.opened();
            } else {
                until("never refused", || a.counts.unauthenticated.load(Ordering::Relaxed) > 0);
            }
        }
    }
}

/// A member that says another member's name is refused at its Hello, on both sides.
#[test]
fn a_member_has_no_other_members_name() {
    let authority = Authority::new();
    for wrong in [&dns(3)[..], "*.web.svc", "p2.web.svc.evil", "p2", "http://p2.web.svc"] {
        let a = member(1, &p256(), &authority, &[&authority]);
        let issued = authority.issue(&p256(), &[wrong, &dns(4)], plain);
        let keys = Arc::new(keys_of("p4", &issued, &[&authority]).unwrap());
        let stream = TcpStream::connect(a.address).unwrap();
        let channel = open(stream, &keys, Instant::now() + PATIENCE).unwrap();
        let greeting = Hello { safety: SafetyCode::Majority, ..hello("c", peer(2, 7, loopback(9))) };
        channel.send(&wire::encode_hello(&greeting).unwrap(), || false).unwrap();
        let mut said = Vec::new();
        while let Ok(crate::channel::Got::Bytes) = channel.receive(&mut said) {}
        let (frame, _) = wire::decode(&said, wire::HELLO_BYTES_MAX).unwrap().unwrap();
        assert!(matches!(frame, Frame::Refuse { why: Refusal::Identity, .. }), "{wrong}: {frame:?}");
        assert!(a.reports.try_recv().is_err(), "{wrong}: nothing was heard");
    }
    // The other way round: this side dials an address where another member answers as p2.
    let a = member(1, &p256(), &authority, &[&authority]);
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let at = listener.local_addr().unwrap();
    let issued = authority.issue(&p256(), &[&dns(3)], plain);
    let keys = Arc::new(keys_of("p3", &issued, &[&authority]).unwrap());
    a.dial(at);
    let (mut stream, _) = listener.accept().unwrap();
    let mut handshake = crate::channel::Handshake::new(keys).unwrap();
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes).unwrap();
        let progress = handshake.feed(&bytes[..count]).unwrap();
        stream.write_all(&progress.reply).unwrap();
        if progress.proved && !handshake.said().is_empty() {
            break;
        }
    }
    let greeting = Hello { safety: SafetyCode::Majority, ..hello("c", peer(2, 7, at)) };
    stream.write_all(&handshake.last_words(&wire::encode_hello(&greeting).unwrap())).unwrap();
    let failed = |a: &Side| a.transport.inner.table().links(ProcessId(Uuid::from_u128(2))).is_empty();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(failed(&a) && a.reports.try_recv().is_err(), "nothing was heard");
}

#[test]
fn files_that_other_members_would_refuse_are_refused_at_the_start() {
    let (authority, other) = (Authority::new(), Authority::new());
    let issue = |change: fn(&mut CertificateParams)| authority.issue(&p256(), &[&dns(1)], change);
    let right = issue(plain);
    assert!(keys_of("p1", &right, &[&authority]).is_ok());
    assert!(keys_of("p1", &right, &[&other, &authority]).is_ok());
    let between = Authority(CertifiedIssuer::signed_by(issuer(), p256(), &authority.0).unwrap());
    let leaf = between.issue(&p256(), &[&dns(1)], plain);
    let chain = Issued { cert: format!("{}{}", leaf.cert, between.pem()), key: leaf.key };
    assert!(keys_of("p1", &chain, &[&authority]).is_ok(), "a chain");

    let wrong = |issued: &Issued, trusted: &[&Authority], words: &str| {
        let error = keys_of("p1", issued, trusted).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    wrong(&right, &[&other], "members that trust --peer-ca refuse");
    wrong(&issue(|params| params.not_after = date_time_ymd(2020, 1, 1)), &[&authority], "expired");
    let client =
        |p: &mut CertificateParams| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    wrong(&authority.issue(&p256(), &[&dns(1)], client), &[&authority], "server auth and client auth");
    let server =
        |p: &mut CertificateParams| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    wrong(&authority.issue(&p256(), &[&dns(1)], server), &[&authority], "server auth and client auth");
    wrong(&authority.issue(&p256(), &[&dns(2)], plain), &[&authority], "\"p1.web.svc\"");
    let keyless = Issued { cert: right.cert.clone(), key: issue(plain).key };
    wrong(&keyless, &[&authority], "--peer-key");
    let nothing = Issued { cert: String::new(), key: right.key.clone() };
    wrong(&nothing, &[&authority], "holds no certificate in PEM");
    let garbage = Issued { cert: right.cert.clone(), key: "nothing".to_owned() };
    wrong(&garbage, &[&authority], "holds no private key in PEM");
    // Lines have lost their ends, as in a variable that was not quoted.
    for ends in ["", "-----END", "\n"] {
        let one_line = right.key.lines().collect::<Vec<_>>().join(" ");
        let cut = one_line.strip_suffix("-----END PRIVATE KEY-----").unwrap();
        for key in [format!("{cut}{ends}"), one_line.clone()] {
            let error = keys_of("p1", &Issued { cert: right.cert.clone(), key }, &[&authority]).unwrap_err();
            let (text, secret) = (format!("{error} {error:?}"), right.key.lines().nth(1).unwrap());
            let bytes = format!("{:?}", secret.as_bytes());
            assert!(text.contains("holds no private key in PEM"), "{text}");
            assert!(!text.contains(secret) && !text.contains(bytes.trim_matches(['[', ']'])), "{text}");
        }
    }
    let long = Issued { cert: "x".repeat(70_000), key: right.key.clone() };
    wrong(&long, &[&authority], "longer than 65536 bytes");
    let many: Vec<&Authority> = std::iter::repeat_n(&authority, 17).collect();
    wrong(&right, &many, "1 to 16 authorities");
    assert!(
        keys_of("not_a_label", &right, &[&authority]).unwrap_err().to_string().contains("letters, digits")
    );
}

#[test]
fn a_certificates_end_is_known() {
    let authority = Authority::new();
    let issued = authority.issue(&p256(), &[&dns(1)], |p| p.not_after = date_time_ymd(2060, 1, 1));
    let keys = keys_of("p1", &issued, &[&authority]).unwrap();
    assert_eq!(keys.expires(), Some(Duration::from_secs(2_840_140_800)));
    let secret = Keys::of_secrets(&[vec![7; 32]], "c").unwrap();
    assert_eq!(secret.expires(), None);
}

#[test]
fn uris_bind_names_too_and_a_pattern_without_a_name_binds_none() {
    let authority = Authority::new();
    let check = |pattern: &str, names: &[&str], name: &str| {
        let folder = tempfile::tempdir().unwrap();
        let issued = authority.issue(&p256(), names, plain);
        let files = CertificateFiles {
            san: pattern.parse().unwrap(),
            ..files(&folder, name, &issued, &[&authority])
        };
        Keys::of_certificate(&files, UnixTime::now()).is_ok()
    };
    assert!(check("spiffe://example.org/pod/{name}", &["spiffe://example.org/pod/web-0"], "web-0"));
    assert!(!check("spiffe://example.org/pod/{name}", &["spiffe://example.org/pod/Web-0"], "web-0"));
    assert!(check("{name}", &["WEB-0"], "web-0"), "DNS knows no case");
    assert!(!check("{name}", &["*"], "web-0") && !check("{name}.web", &["*.web"], "web-0"));
    assert!(!check("{name}", &["web-0.evil"], "web-0") && !check("{name}.evil", &["web-0"], "web-0"));
    assert!(!check("{name}", &["a.b"], "a.b"), "one label");
    assert!(check("spiffe://example.org/web", &["spiffe://example.org/web"], "any name"));
    for bad in ["", "{name}{name}", "{pod}", "*.{name}", "a b", "ä"] {
        assert!(bad.parse::<crate::channel::SanPattern>().is_err(), "{bad}");
    }
}

/// Strangers learn no authority's name, and one without a certificate not a byte of an answer.
#[test]
fn a_stranger_with_another_authoritys_certificate_is_told_nothing() {
    let (authority, other) = (Authority::new(), Authority::new());
    let a = member(1, &p256(), &authority, &[&authority]);
    let issued = other.issue(&p256(), &[&dns(2)], plain);
    let keys = keys_of("p2", &issued, &[&other, &authority]).unwrap();
    let channel =
        open(TcpStream::connect(a.address).unwrap(), &Arc::new(keys), Instant::now() + PATIENCE).unwrap();
    channel.send(&wire::encode_hello(&hello("c", peer(2, 7, loopback(9)))).unwrap(), || false).unwrap();
    let mut said = Vec::new();
    while let Ok(crate::channel::Got::Bytes) = channel.receive(&mut said) {}
    assert_eq!(said, b"");
    until("not counted", || a.counts.unauthenticated.load(Ordering::Relaxed) == 1);
}

/// What the text says of an expired certificate changes each second.
#[test]
fn an_expired_certificate_is_said_once() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let issued = authority.issue(&p256(), &[&dns(1)], plain);
    let credentials = credentials_in(&folder, &issued, &authority);
    let expired = |params: &mut CertificateParams| params.not_after = date_time_ymd(2020, 1, 1);
    write(folder.path(), &authority.issue(&p256(), &[&dns(1)], expired), &[&authority]);
    assert!(matches!(credentials.look(), Reading::Failed(_)));
    let said = credentials.unusable().unwrap();
    until("the text stays the same", || {
        assert!(matches!(credentials.look(), Reading::Unchanged));
        credentials.unusable().is_some_and(|text| text != said)
    });
    write(folder.path(), &issued, &[&authority]);
    assert!(matches!(credentials.look(), Reading::Changed(_)));
}

/// The old one may expire before the certificate does.
#[test]
fn a_renewed_intermediate_certificate_is_sent_from_then_on() {
    let authority = Authority::new();
    let key = p256();
    let between = || {
        let key = KeyPair::from_pem(&key.serialize_pem()).unwrap();
        Authority(CertifiedIssuer::signed_by(issuer(), key, &authority.0).unwrap())
    };
    let (old, new) = (between(), between());
    let leaf = old.issue(&p256(), &[&dns(1)], plain);
    let chain = |between: &Authority| Issued {
        cert: format!("{}{}", leaf.cert, between.pem()),
        key: leaf.key.clone(),
    };
    let folder = tempfile::tempdir().unwrap();
    let credentials = credentials_in(&folder, &chain(&old), &authority);
    write(folder.path(), &chain(&old), &[&authority]);
    assert!(matches!(credentials.look(), Reading::Unchanged));
    write(folder.path(), &chain(&new), &[&authority]);
    assert!(matches!(credentials.look(), Reading::Changed(_)));
}

/// New files count, and each link is made anew, while the other side hears of no end but an announced one.
#[test]
fn links_are_renewed_when_the_certificate_is() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let issued = authority.issue(&p256(), &[&dns(1)], plain);
    let credentials = credentials_in(&folder, &issued, &authority);
    let a = side_with(1, "c", Ipv4Addr::LOCALHOST, SafetyCode::Majority, credentials);
    let others: Vec<Side> = (2..5).map(|k| member(k, &p256(), &authority, &[&authority])).collect();
    a.transport.seek(others.iter().map(|side| side.address).collect());
    for other in &others {
        other.opened();
    }
    let counts = || *a.counts.links.lock().unwrap();
    until("three links", || counts() == LinkCounts { clear: 0, sealed: 3, former: 0 });

    write(folder.path(), &authority.issue(&p256(), &[&dns(1)], plain), &[&authority]);
    crate::transport::dialer::look_at_credentials(&a.transport.inner);
    assert!(matches!(a.transport.inner.settings.credentials.look(), Reading::Unchanged));
    a.transport.inner.seek_changed.notify_one();
    for other in &others {
        other.opened();
        assert_eq!(
            other.closed(),
            (ProcessId(Uuid::from_u128(1)), 1, false),
            "announced, and after the new one"
        );
    }
    until("renewed", || counts() == LinkCounts { clear: 0, sealed: 3, former: 0 });

    // Files of no use: all stays as it is.
    std::fs::write(folder.path().join("tls.crt"), "nothing").unwrap();
    crate::transport::dialer::look_at_credentials(&a.transport.inner);
    assert_eq!(counts(), LinkCounts { clear: 0, sealed: 3, former: 0 });
}
