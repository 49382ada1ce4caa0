//! Reads the documents of a stream, each as a tree with its place in the text.

use super::builder::{Awaited, Builder, Fault, Sink, WEIGHT_MAX};
use super::json;
use super::sections::{BYTE_ORDER_MARK, Section, line_end, sections};
use super::tree::{Node, Scalar};
use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use std::borrow::Cow;
use std::ops::Range;

/// The largest input, in bytes: twenty times what etcd would hold of one object.
pub const INPUT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Why the input is no stream of manifests, and where. Lines and columns count from 1.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {why}{}", hint(.why, *.template))]
pub struct Unreadable {
    pub line: usize,
    pub column: usize,
    pub why: Fault,
    /// Whether the input looks like a template.
    pub template: bool,
}

/// What else may be the matter: templates, which people try, and what only JSON has.
fn hint(why: &Fault, template: bool) -> &'static str {
    match why {
        Fault::Syntax(_) | Fault::Key if template => {
            "; it looks like a template: render it first (helm template, kustomize build)"
        }
        Fault::Syntax(why) if why.contains("Unicode character escape code") => {
            "; only JSON has pairs of surrogates: write the character itself"
        }
        _ => "",
    }
}

/// A document of a stream.
#[derive(Debug)]
pub struct Document<T = Node> {
    /// What is in it, or what a [`Sink`] makes of it.
    pub root: T,
    /// The line where it begins, from 1.
    pub line: usize,
    /// Its section: itself, its marker, and the comments around it.
    pub section: Range<usize>,
    /// Where its `---` is, if it has one.
    pub marker: Option<usize>,
    /// Where what is in it stands, from its first character to the end of its last line.
    pub content: Range<usize>,
    /// Whether it is JSON.
    pub json: bool,
    /// What this program cannot write again, if there is anything.
    pub unwritable: Option<&'static str>,
}

/// Reads all of it.
pub fn documents(text: &str) -> Result<Vec<Document>, Unreadable> {
    let mut reader = Reader::new(text, Builder::new(WEIGHT_MAX));
    sections(text).filter_map(|section| reader.document(&section).transpose()).collect()
}

/// Reads the sections of a text.
pub struct Reader<S> {
    template: bool,
    sink: S,
}

/// A YAML document that is not at its end.
#[derive(Default)]
struct Draft {
    marker: Option<usize>,
    /// Where its content begins: the offset, and the line.
    start: Option<(usize, usize)>,
    /// How many characters into the section its content ends, for all that was read.
    end: usize,
    /// The line of that, in the section.
    end_line: usize,
    unwritable: Option<&'static str>,
}

impl<S: Sink> Reader<S> {
    /// For sections of this text.
    pub fn new(text: &str, sink: S) -> Reader<S> {
        Reader { template: text.contains("{{"), sink }
    }

    /// The document of a section; none: there are only comments.
    pub fn document(&mut self, section: &Section<'_>) -> Result<Option<Document<S::Document>>, Unreadable> {
        let text = section.text.trim_start_matches(BYTE_ORDER_MARK);
        let marked = text.starts_with("---");
        let content = text.strip_prefix("---").unwrap_or(text).trim_start_matches([' ', '\t', '\r', '\n']);
        match json::is_json(content) {
            true => {
                let marker = marked.then(|| section.text.len() - text.len());
                self.json(section, marker, section.text.len() - content.len()).map(Some)
            }
            false => self.yaml(section),
        }
    }

    /// A document in JSON, which begins after this many bytes.
    fn json(
        &mut self,
        section: &Section<'_>,
        marker: Option<usize>,
        from: usize,
    ) -> Result<Document<S::Document>, Unreadable> {
        let content = section.text.get(from..).unwrap_or_default();
        json::read(content, &mut self.sink).map_err(|(at, why)| {
            let (line, column) = place(section.text, from + at);
            self.unreadable(why, section.line + line - 1, column)
        })?;
        Ok(Document {
            root: self.sink.finish(),
            line: section.line + place(section.text, from).0 - 1,
            section: section.start..section.start + section.text.len(),
            marker: marker.map(|marker| section.start + marker),
            content: section.start + from
                ..section.start + last_line_end(section.text, from, section.text.len()),
            json: true,
            unwritable: None,
        })
    }

    fn yaml(&mut self, section: &Section<'_>) -> Result<Option<Document<S::Document>>, Unreadable> {
        let (mut draft, mut document) = (Draft::default(), None);
        let mut parser = Parser::new_from_str(section.text);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| {
                let at = error.marker();
                let why = Fault::Syntax(error.info().to_owned());
                self.unreadable(why, section.line + at.line() - 1, at.col() + 1)
            })?;
            let line = section.line + span.start.line() - 1;
            match event {
                Event::DocumentStart(_) if document.is_some() => {
                    let why = Fault::Syntax("a document begins here without a line --- before it".to_owned());
                    return Err(self.unreadable(why, line, span.start.col() + 1));
                }
                Event::DocumentStart(explicit) => {
                    draft.marker = explicit.then(|| offset(section.text, span.start.index()));
                    continue;
                }
                Event::DocumentEnd => {
                    let here = (offset(section.text, span.start.index()), line);
                    document = Some(self.finished(section, std::mem::take(&mut draft), here));
                    continue;
                }
                Event::Nothing | Event::StreamStart | Event::StreamEnd => continue,
                _ => {}
            }
            if draft.start.is_none() {
                draft.start = Some((offset(section.text, span.start.index()), line));
            }
            if matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text.is_empty()) {
                self.empty(&span, &mut draft);
            }
            // A block list or mapping ends, without a character of its own, where the next thing begins.
            if !span.is_empty() {
                (draft.end, draft.end_line) = (draft.end.max(span.end.index()), span.end.line());
            }
            self.part(event, &mut draft).map_err(|why| self.unreadable(why, line, span.start.col() + 1))?;
        }
        Ok(document)
    }

    /// The document that ends here.
    fn finished(
        &mut self,
        section: &Section<'_>,
        draft: Draft,
        here: (usize, usize),
    ) -> Document<S::Document> {
        let Draft { marker, start, end, unwritable, .. } = draft;
        let (from, line) = start.unwrap_or(here);
        let until = last_line_end(section.text, from, offset(section.text, end));
        Document {
            root: self.sink.finish(),
            line,
            section: section.start..section.start + section.text.len(),
            marker: marker.map(|marker| section.start + marker),
            content: section.start + from..section.start + until,
            json: false,
            unwritable,
        }
    }

    /// Takes in what stands in a document.
    fn part(&mut self, event: Event<'_>, draft: &mut Draft) -> Result<(), Fault> {
        match event {
            Event::Alias(anchor) => self.sink.alias(anchor),
            Event::Scalar(text, style, anchor, tag) => {
                look_at_tag(tag.as_deref(), draft);
                let scalar = self.scalar(text, style, draft);
                self.sink.scalar(scalar, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                look_at_tag(tag.as_deref(), draft);
                self.sink.list(anchor)
            }
            Event::MappingStart(anchor, tag) => {
                look_at_tag(tag.as_deref(), draft);
                self.sink.map(anchor)
            }
            _ => self.sink.end(),
        }
    }

    /// A scalar without a character: where the content of a document ends with it, nothing else may say.
    fn empty(&self, span: &Span, draft: &mut Draft) {
        match self.sink.awaits() {
            // Behind its dash.
            Awaited::Item => draft.end = draft.end.max(span.end.index()),
            Awaited::Key => draft.unwritable = Some("an empty key (?)"),
            // Behind a colon on a line of its own; without one, where the next thing begins.
            Awaited::Value if span.is_empty() && span.start.line() > draft.end_line => {
                draft.unwritable.get_or_insert("an explicit key (?) without a value");
            }
            Awaited::Value | Awaited::Root => {}
        }
    }

    fn scalar(&self, text: Cow<'_, str>, style: ScalarStyle, draft: &mut Draft) -> Scalar {
        if style != ScalarStyle::Plain {
            return Scalar::Text(text.into_owned().into());
        }
        if text == "<<" {
            draft.unwritable = Some("a merge key (<<)");
        }
        Scalar::unquoted(&text)
    }

    fn unreadable(&self, why: Fault, line: usize, column: usize) -> Unreadable {
        Unreadable { line, column, why, template: self.template }
    }
}

/// A tag says what a value is; only the one that says what it is anyway could be left out.
fn look_at_tag(tag: Option<&Tag>, draft: &mut Draft) {
    if tag.is_some() {
        draft.unwritable.get_or_insert("a tag (!)");
    }
}

/// Where a character of a section stands, in bytes. It is asked for a few times a section, so that the time
/// stays in proportion to the text.
fn offset(text: &str, character: usize) -> usize {
    if text.is_ascii() {
        return character;
    }
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

/// The line and column of a byte, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let (mut line, mut begin) = (1, 0);
    while let Some(rest) = text.get(begin..at).filter(|rest| !rest.is_empty()) {
        let end = line_end(rest);
        if !rest.get(..end).is_some_and(|line| line.ends_with(['\n', '\r'])) {
            break;
        }
        (line, begin) = (line + 1, begin + end);
    }
    (line, text.get(begin..at).map_or(0, |before| before.chars().count()) + 1)
}

/// The end of the last line that a content is on, its line break included.
fn last_line_end(text: &str, from: usize, end: usize) -> usize {
    let last = text.get(from..end).map_or(from, |content| from + content.trim_end().len());
    if last == from { from } else { last + line_end(text.get(last..).unwrap_or_default()) }
}
