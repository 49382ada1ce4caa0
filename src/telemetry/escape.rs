//! Text of others made harmless for a terminal or a log.

/// The text with every character that is not visible spelled out (`\n`, `\u{1b}`, `\u{202e}`). So no text
/// that a peer or a server chose can begin a line of its own, move the cursor or turn the reading direction.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) {
            escaped.push(c);
        } else {
            escaped.extend(c.escape_debug());
        }
    }
    escaped
}

/// Whether a character is visible, or a space: a terminal acts on no such one.
pub fn is_plain(letter: char) -> bool {
    matches!(letter, '\'' | '"' | '\\') || letter.escape_debug().len() == 1
}

/// A value for a `key=value` pair: as it is if it is one plain word, else in quotes and escaped. So it cannot
/// look like further pairs.
pub fn value(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'=' | b'\\');
    if !text.is_empty() && text.bytes().all(plain) { text.to_owned() } else { format!("{text:?}") }
}

/// At most the first `bytes_max` bytes, whole characters, with an ellipsis where something is missing.
pub fn shortened(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|&i| text.is_char_boundary(i));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spells_out_what_is_not_visible() {
        assert_eq!(
            escaped("a\nb\t\u{1b}[2J\u{202e}\u{9b}\u{2028}"),
            r"a\nb\t\u{1b}[2J\u{202e}\u{9b}\u{2028}"
        );
        assert_eq!(escaped(r#"Zoë's "pod" \o/ 日本"#), r#"Zoë's "pod" \o/ 日本"#);
    }

    #[test]
    fn quotes_what_could_look_like_more() {
        assert_eq!(value("web-0"), "web-0");
        assert_eq!(value("[fd00::1]:4041"), "[fd00::1]:4041");
        assert_eq!(value("web epoch=9"), r#""web epoch=9""#);
        assert_eq!(value(""), r#""""#);
        assert_eq!(value("a\"b"), r#""a\"b""#);
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_line(text in any::<String>(), bytes_max in 0usize..40) {
            prop_assert!(!escaped(&text).chars().any(char::is_control));
            prop_assert!(!value(&text).chars().any(char::is_control));
            prop_assert!(shortened(text, bytes_max).len() <= bytes_max + '…'.len_utf8());
        }
    }
}
