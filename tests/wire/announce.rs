//! What a Hello may announce.

use super::{framed, small_peer};
use bellwether::election::{
    ANNOUNCE_KEY_BYTES_MAX, ANNOUNCE_MAX, ANNOUNCE_VALUE_BYTES_MAX, AnnouncedValues, LimitError,
};
use bellwether::wire::{DecodeError, HELLO_BYTES_MAX, Hello, SafetyCode, decode, encode_hello};

/// As many values as there may be, each with the longest key and value.
pub fn largest() -> AnnouncedValues {
    let key = |number| format!("{number:0>ANNOUNCE_KEY_BYTES_MAX$}");
    AnnouncedValues(
        (0..ANNOUNCE_MAX).map(|number| (key(number), "v".repeat(ANNOUNCE_VALUE_BYTES_MAX))).collect(),
    )
}

#[test]
fn an_announcement_beyond_a_limit_neither_leaves_nor_enters() {
    let pair = |key: &str, value: &str| AnnouncedValues([(key.to_owned(), value.to_owned())].into());
    let mut many = largest();
    many.0.insert("one".to_owned(), String::new());
    let key = |bytes| LimitError::AnnouncedKey { bytes };
    let control =
        |character| LimitError::ControlCharacter { what: "an announced value", character, position: 1 };
    let long =
        LimitError::TooLong { what: "an announced value", bytes: 257, bytes_max: ANNOUNCE_VALUE_BYTES_MAX };
    for (announce, error) in [
        (many, LimitError::Announced(ANNOUNCE_MAX + 1)),
        (pair("", "v"), key(0)),
        (pair(&"k".repeat(33), "v"), key(33)),
        (pair("URL", "v"), key(3)),
        (pair("a b", "v"), key(3)),
        (pair("k", "a\r\nb"), control('\r')),
        (pair("k", "a\u{85}b"), control('\u{85}')),
        (pair("k", &"v".repeat(257)), long),
    ] {
        let (safety, token) = (SafetyCode::Classic, 0);
        let cluster = "web".to_owned();
        let hello =
            Hello { version_min: 1, version_max: 1, cluster, peer: small_peer(), safety, token, announce };
        assert_eq!(encode_hello(&hello), Err(error.clone()));
        let bytes = framed(1, &postcard::to_stdvec(&hello).unwrap());
        let limit = DecodeError::Limit { frame: "hello", source: error };
        assert_eq!(decode(&bytes, HELLO_BYTES_MAX), Err(limit));
    }
}
