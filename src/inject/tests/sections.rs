//! What is read section by section is what the stream says as a whole.

use super::*;
use crate::inject::sections::sections;
use saphyr_parser::{Event, Parser};

/// What a YAML reader finds in a text, without places; none: it refuses the text.
fn events(text: &str) -> Option<Vec<String>> {
    let found = Parser::new_from_str(text).filter_map(|event| match event {
        Err(_) => Some(None),
        Ok((Event::StreamStart | Event::StreamEnd, _)) => None,
        Ok((Event::Scalar(text, style, ..), _)) => Some(Some(format!("{style:?} {text}"))),
        // Their numbers count from the beginning of what is read.
        Ok((Event::Alias(_), _)) => Some(Some("alias".to_owned())),
        Ok((Event::SequenceStart(..), _)) => Some(Some("list".to_owned())),
        Ok((Event::MappingStart(..), _)) => Some(Some("map".to_owned())),
        Ok((event, _)) => Some(Some(format!("{event:?}"))),
    });
    found.collect()
}

#[track_caller]
fn reads_alike(text: &str) {
    let parts: Vec<&str> = sections(text).map(|section| section.text).collect();
    assert_eq!(parts.concat(), text);
    let Some(whole) = events(text) else { return };
    let apart: Option<Vec<Vec<String>>> = parts.iter().map(|part| events(part)).collect();
    assert_eq!(apart.map(|apart| apart.concat()), Some(whole), "{text:?} as {parts:?}");
}

#[test]
fn a_section_begins_at_each_marker() {
    let lines = |text| sections(text).map(|section| (section.line, section.text)).collect::<Vec<_>>();
    assert_eq!(lines(""), []);
    assert_eq!(lines("a: b\n---\nc: d"), [(1, "a: b\n"), (2, "---\nc: d")]);
    assert_eq!(lines("a: |\n ---\n  b\n--- # c\n"), [(1, "a: |\n ---\n  b\n"), (4, "--- # c\n")]);
    assert_eq!(lines("a\r\n---\r\nb\r...\rc"), [(1, "a\r\n"), (2, "---\r\nb\r"), (4, "...\rc")]);
    assert_eq!(lines("---a\n----\n"), [(1, "---a\n----\n")]);
    let directives = "%YAML 1.2\n# c\n---\na: b\n";
    assert_eq!(
        lines(&format!("{directives}...\n{directives}---\n")),
        [(1, directives), (5, &*format!("...\n{directives}")), (10, "---\n")]
    );
    for text in
        ["...\n", "...\n...\n", "a\n...\n", "---\n---\n", "\u{feff}---\na\n\u{feff}---\nb\n", directives]
    {
        reads_alike(text);
    }
}

proptest! {
    #[test]
    fn any_text_reads_alike(text in yamlish()) {
        reads_alike(&text);
    }
}
