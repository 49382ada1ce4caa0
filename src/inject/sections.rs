//! Splits a stream into sections, each of which is read by itself and holds at most one document.
//!
//! So a JSON document is read as JSON wherever it stands, what one document costs does not depend on those
//! before it, and an unchanged section means the same as before.

/// Marks the order of bytes, and means nothing in UTF-8. It may stand before each document.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// A document's text with the comments and the marker before it; or comments alone.
pub struct Section<'a> {
    /// All of it. It ends before a line that begins with `---` or `...`.
    pub text: &'a str,
    /// Where it begins, in bytes.
    pub start: usize,
    /// The line where it begins, from 1.
    pub line: usize,
}

/// What a line means where sections begin and end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// `---`: a document begins.
    Start,
    /// `...`: a document ends.
    End,
    /// `%YAML 1.2` and the like, if no document has begun.
    Directive,
    /// A comment, or nothing.
    Blank,
    Content,
}

impl Line {
    fn of(line: &str) -> Line {
        let line = line.trim_start_matches(BYTE_ORDER_MARK);
        let is_marker = |marker: &str| {
            line.strip_prefix(marker)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
        };
        match line.bytes().next() {
            Some(b'-') if is_marker("---") => Line::Start,
            Some(b'.') if is_marker("...") => Line::End,
            Some(b'%') => Line::Directive,
            Some(b'#') => Line::Blank,
            _ if line.trim_ascii().is_empty() => Line::Blank,
            _ => Line::Content,
        }
    }
}

/// All sections of a text. Put together they are the text.
pub fn sections(text: &str) -> impl Iterator<Item = Section<'_>> {
    let (mut start, mut line) = (0, 1);
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let (length, lines) = first(rest);
        let section = Section { text: rest.get(..length)?, start, line };
        (start, line) = (start + length, line + lines);
        Some(section)
    })
}

/// The length of the first section of a text, in bytes and in lines.
fn first(text: &str) -> (usize, usize) {
    let (mut length, mut lines) = (0, 0);
    // Directives stand before the marker of their document, and before all of its content.
    let (mut prologue, mut directives) = (true, false);
    while let Some(rest) = text.get(length..).filter(|rest| !rest.is_empty()) {
        let line = rest.get(..line_end(rest)).unwrap_or(rest);
        let kind = Line::of(line);
        if lines > 0 && (kind == Line::End || kind == Line::Start && !directives) {
            break;
        }
        directives = kind == Line::Directive && prologue || directives && kind != Line::Start;
        prologue = prologue && !matches!(kind, Line::Start | Line::Content);
        (length, lines) = (length + line.len(), lines + 1);
    }
    (length, lines)
}

/// The line break of the first line of a text.
pub fn line_break(text: &str) -> &str {
    let first = text.get(..line_end(text)).unwrap_or_default();
    match first.trim_start_matches(|c| c != '\r' && c != '\n') {
        "" => "\n",
        found => found,
    }
}

/// Where the first line of a text ends, its line break included.
pub fn line_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        Some(at) if bytes[at..].starts_with(b"\r\n") => at + 2,
        Some(at) => at + 1,
        None => text.len(),
    }
}
