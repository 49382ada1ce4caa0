//! Writes a stream with its changes, and makes sure that it reads as what was meant.

use super::builder::{Builder, Sink};
use super::emit;
use super::matcher::{Matched, Matcher};
use super::plan::{Change, Place};
use super::sections::{BYTE_ORDER_MARK, Section, line_break, sections};
use super::stream::{Document, Reader, Unreadable};
use super::tree::Node;
use crate::config::InjectArgs;
use std::borrow::Cow;
use std::collections::BTreeMap;

type Changes = BTreeMap<Place, Change>;

/// The text with its changes. None: it would not read as what is meant, and must not be written.
pub fn rewrite(text: &str, documents: &[Document], changes: &Changes, args: &InjectArgs) -> Option<String> {
    let rewriter = Rewriter { text, line_break: line_break(text), documents, changes, args };
    let out = rewriter.write();
    (changes.is_empty() || rewriter.reads_as_meant(&out)).then_some(out)
}

struct Rewriter<'a> {
    text: &'a str,
    /// What ends the lines that are written anew.
    line_break: &'a str,
    documents: &'a [Document],
    changes: &'a Changes,
    args: &'a InjectArgs,
}

impl<'a> Rewriter<'a> {
    fn write(&self) -> String {
        let (mut out, mut copied) = (String::with_capacity(self.text.len()), 0);
        for (number, document) in self.documents.iter().enumerate() {
            let parts = self.parts(number);
            if matches!(parts.as_slice(), [Cow::Borrowed(_)]) {
                continue;
            }
            // A document that goes takes its marker with it.
            let until = document.marker.filter(|_| parts.is_empty()).unwrap_or(document.content.start);
            out.push_str(self.text.get(copied..until).unwrap_or_default());
            for (number, part) in parts.iter().enumerate() {
                if number > 0 {
                    self.add_lines(&mut out, "---\n");
                }
                match part {
                    Cow::Borrowed(_) => {
                        out.push_str(self.text.get(document.content.clone()).unwrap_or_default());
                    }
                    Cow::Owned(node) => {
                        self.begin_line(&mut out);
                        let lines = if document.json { emit::json(node) } else { emit::yaml(node) };
                        self.add_lines(&mut out, &lines);
                    }
                }
                if !out.ends_with(['\n', '\r']) {
                    out.push_str(self.line_break);
                }
            }
            copied = document.content.end;
        }
        out.push_str(self.text.get(copied..).unwrap_or_default());
        out
    }

    /// What is written anew begins in the first column, also where the original stood behind `---`.
    fn begin_line(&self, out: &mut String) {
        out.truncate(out.trim_end_matches([' ', '\t']).len());
        if !out.is_empty() && !out.ends_with(['\n', '\r', BYTE_ORDER_MARK]) {
            out.push_str(self.line_break);
        }
    }

    /// Adds lines of `emit`. A line feed in them is nothing but a line break: in a block, YAML's readers take
    /// each kind for a line feed, and elsewhere a line feed is escaped.
    fn add_lines(&self, out: &mut String, lines: &str) {
        match self.line_break {
            "\n" => out.push_str(lines),
            line_break => out.push_str(&lines.replace('\n', line_break)),
        }
    }

    /// What becomes of a document; nothing: it goes. Borrowed: it stays as it is.
    fn parts(&self, number: usize) -> Vec<Cow<'a, Node>> {
        let Some(document) = self.documents.get(number) else { return Vec::new() };
        if self.changes.range((number, Some(0))..=(number, Some(usize::MAX))).next().is_some() {
            return vec![Cow::Owned(self.list(number, &document.root))];
        }
        match self.changes.get(&(number, None)) {
            Some(change) => change.outcome(&document.root, self.args),
            None => vec![Cow::Borrowed(&document.root)],
        }
    }

    /// A List with its items changed.
    fn list(&self, number: usize, root: &Node) -> Node {
        let mut items = Vec::new();
        for (item_number, item) in root.items(&["items"]).iter().enumerate() {
            match self.changes.get(&(number, Some(item_number))) {
                Some(change) => {
                    items.extend(change.outcome(item, self.args).into_iter().map(Cow::into_owned));
                }
                None => items.push(item.clone()),
            }
        }
        root.with("items", Node::List(items))
    }

    /// Whether a text reads as what the documents become. Empty documents do not count.
    fn reads_as_meant(&self, out: &str) -> bool {
        let mut meant = (0..self.documents.len())
            .flat_map(|number| self.parts(number).into_iter().map(move |part| (number, part)))
            .filter(|(_, part)| !part.is_absent(&[]))
            .peekable();
        for section in sections(out) {
            let matched = match meant.peek() {
                // A section that is as it was means what it meant.
                Some((number, Cow::Borrowed(_))) if self.section(*number) == Some(section.text) => {
                    Ok(Some(Matched::Same))
                }
                Some((_, Cow::Owned(node))) => read(&section, Matcher::new(node)),
                // It may have aliases. What they make of it has been weighed when it was taken in.
                other => read(&section, Builder::new(usize::MAX)).map(|found| {
                    found.map(|found| Matched::of(&found, other.map(|(_, part)| part.as_ref())))
                }),
            };
            match matched {
                Ok(None | Some(Matched::Empty)) => {}
                Ok(Some(Matched::Same)) => drop(meant.next()),
                Ok(Some(Matched::Other)) | Err(_) => return false,
            }
        }
        meant.next().is_none()
    }

    /// The section of a document as it was.
    fn section(&self, number: usize) -> Option<&'a str> {
        self.documents.get(number).and_then(|document| self.text.get(document.section.clone()))
    }
}

/// What a sink makes of a section; none: no document is in it.
fn read<S: Sink>(section: &Section<'_>, sink: S) -> Result<Option<S::Document>, Unreadable> {
    let document = Reader::new("", sink).document(section)?;
    Ok(document.map(|document| document.root))
}
