//! Durations on the command line: one whole number and one unit, so that there is nothing to guess.

use std::time::Duration;

/// The longest duration that any flag takes. No setting needs to be longer, and with it no sum or product of
/// two settings can overflow.
pub const LONGEST: Duration = Duration::from_secs(3600);

/// Why a text is not a duration; each says what to write instead.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DurationError {
    /// There is nothing.
    #[error("it is empty; write a whole number and a unit, such as 250ms, 5s or 1m")]
    Empty,
    /// A number alone.
    #[error("a number without a unit; write {0}s for seconds or {0}ms for milliseconds")]
    NoUnit(u64),
    /// A minus sign.
    #[error("a duration cannot be negative; write a whole number and a unit, such as 250ms, 5s or 1m")]
    Negative,
    /// A decimal point.
    #[error("fractions are not taken; write it in a smaller unit, such as 1500ms for one and a half seconds")]
    Fraction,
    /// Not a number with one of the units.
    #[error(
        "not a duration; write one whole number and one of the units ms, s, m, h, such as 250ms, 5s or 1m"
    )]
    Malformed,
    /// More than [`LONGEST`].
    #[error("longer than any setting makes sense for; the longest is 1h")]
    TooLong,
    /// Zero, where something has to last.
    #[error("it must be longer than zero; write a whole number and a unit, such as 250ms, 5s or 1m")]
    Zero,
}

/// Reads a duration that may be zero.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(match text.strip_prefix('-') {
            _ if text.is_empty() => DurationError::Empty,
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => DurationError::Negative,
            _ => DurationError::Malformed,
        });
    }
    // Digits alone cannot fail in any other way than by being too many.
    let number: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 3600 * 1000,
        "" => return Err(DurationError::NoUnit(number)),
        _ if unit.starts_with(['.', ',']) => return Err(DurationError::Fraction),
        _ => return Err(DurationError::Malformed),
    };
    let ms = number.checked_mul(unit_ms).ok_or(DurationError::TooLong)?;
    match Duration::from_millis(ms) {
        long if long > LONGEST => Err(DurationError::TooLong),
        duration => Ok(duration),
    }
}

/// Reads a duration that must not be zero.
pub fn parse_positive(text: &str) -> Result<Duration, DurationError> {
    match parse(text)? {
        Duration::ZERO => Err(DurationError::Zero),
        duration => Ok(duration),
    }
}

/// Writes a duration the way `parse` reads it, in whole milliseconds or seconds.
pub fn show(duration: Duration) -> String {
    match duration.as_millis() {
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_one_number_and_one_unit() {
        for (text, ms) in
            [("250ms", 250), ("5s", 5000), ("1m", 60_000), ("1h", 3_600_000), ("0s", 0), ("007s", 7000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else_and_says_why() {
        use DurationError::*;
        for (text, error) in [
            ("", Empty),
            ("5", NoUnit(5)),
            ("-5s", Negative),
            ("-s", Malformed),
            ("1.5s", Fraction),
            ("1,5s", Fraction),
            ("5 s", Malformed),
            (" 5s", Malformed),
            ("5s ", Malformed),
            ("+5s", Malformed),
            ("1m30s", Malformed),
            ("5sec", Malformed),
            ("5S", Malformed),
            ("5us", Malformed),
            ("٥s", Malformed),
            ("s", Malformed),
            ("61m", TooLong),
            ("3600001ms", TooLong),
            ("18446744073709551615h", TooLong),
            ("99999999999999999999999s", TooLong),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
        assert_eq!(parse_positive("0ms"), Err(Zero));
        assert_eq!(NoUnit(5).to_string().matches("5s").count(), 1);
    }

    proptest! {
        #[test]
        fn any_text_parses_or_fails_cleanly(text in "\\PC*") {
            if let Ok(duration) = parse(&text) {
                prop_assert!(duration <= LONGEST);
            }
        }

        #[test]
        fn nearly_a_duration_parses_or_fails_cleanly(text in "-?[0-9]{0,25}[.,]?[0-9]{0,2}(ms|s|m|h|)") {
            if let Ok(duration) = parse(&text) {
                prop_assert!(duration <= LONGEST);
            }
        }

        #[test]
        fn what_is_shown_can_be_read(ms in 0u64..=3_600_000) {
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(parse(&show(duration)), Ok(duration));
        }
    }
}
