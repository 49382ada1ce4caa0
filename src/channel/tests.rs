//! The file of the secret, and what tells a sealed connection from one in clear.

use super::*;

fn read_lines(text: &[u8]) -> Result<Vec<Vec<u8>>, SecretError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, text).unwrap();
    read(&path)
}

#[test]
fn a_file_has_one_to_three_long_lines() {
    let (a, b) = ("a".repeat(32), "b".repeat(50));
    let both = vec![a.clone().into_bytes(), b.clone().into_bytes()];
    for text in [format!("{a}\n{b}"), format!("{a}\n{b}\n"), format!("\n {a}\r\n\n{b}\t\r\n")] {
        assert_eq!(read_lines(text.as_bytes()).unwrap(), both, "{text:?}");
    }
    for (text, words) in [
        (String::new(), "has 0 lines"),
        ("\n \n".to_owned(), "has 0 lines"),
        ([a.as_str(); 4].join("\n"), "has 4 lines"),
        (format!("{a}\nshort"), "line 2 of the file"),
        ("x".repeat(5000), "longer than 4096 bytes"),
    ] {
        let error = read_lines(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("short,") && !error.contains("aaaa"), "{error} shows the secret");
    }
    let missing = read(std::path::Path::new("/nowhere/secret")).unwrap_err().to_string();
    assert!(missing.contains("/nowhere/secret") && missing.contains("cannot be read"), "{missing}");
}

#[test]
fn keys_differ_by_secret_and_by_election() {
    let of = |secret: &[u8], election: &str| {
        Keys::of_secrets(&[secret.to_vec()], election).unwrap().fingerprints().to_vec()
    };
    let (one, other) = (b"one-secret-of-at-least-32-random-bytes", b"another-secret-of-at-least-32-bytes!!!");
    assert_eq!(of(one, "web"), of(one, "web"));
    assert_ne!(of(one, "web"), of(one, "api"));
    assert_ne!(of(one, "web"), of(other, "web"));
}

#[test]
fn a_hello_in_clear_is_no_handshake() {
    for (first, sealed) in [
        (&b""[..], None),
        (&[0x16], None),
        (&[0x16, 0x03], None),
        (&[0x16, 0x03, 0x01], Some(true)),
        (&[0x16, 0x03, 0x03], Some(true)),
        // A Hello of 0x316 bytes.
        (&[0x16, 0x03, 0x00, 0x00], Some(false)),
        (&[0x32, 0x00], Some(false)),
        (b"GET", Some(false)),
    ] {
        assert_eq!(looks_sealed(first), sealed, "{first:?}");
    }
}

/// Without a proof no end of a channel is read.
#[test]
fn what_follows_the_end_of_a_channel_is_refused() {
    let keys = Keys::of_secrets(&[b"one-secret-of-at-least-32-random-bytes".to_vec()], "web").unwrap();
    let keys = std::sync::Arc::new(keys);
    let mut dials = Handshake::dialling(std::sync::Arc::clone(&keys), [127, 0, 0, 1].into()).unwrap();
    let mut accepts = Handshake::new(keys).unwrap();
    let mut said = Vec::new();
    for _ in 0..2 {
        let told = dials.feed(&said).unwrap_or_else(|_| panic!("the dialling side")).reply;
        said = accepts.feed(&told).unwrap_or_else(|_| panic!("the accepting side")).reply;
    }
    let end = dials.last_words(&[]);
    assert!(accepts.feed(&end).is_ok_and(|progress| progress.proved));
    assert!(matches!(accepts.feed(&[0]), Err((HandshakeError::Protocol, _))));
}
