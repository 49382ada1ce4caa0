//! Splits a stream into its documents, each a tree with its place in the text, within bounds.

use super::tree::{Node, Scalar};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The largest input: ten times what etcd would hold of one object.
pub const INPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How deep lists and mappings may be in each other; a StatefulSet needs about 15.
const DEPTH_MAX: usize = 64;
/// How much all documents may be together once their aliases are written out: bytes of text, and this many
/// for a node.
const WEIGHT_MAX: usize = 128 * 1024 * 1024;
const NODE_WEIGHT: usize = 32;

/// Why the input is no stream of manifests. Lines and columns count from 1.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("line {line}, column {column}: {why}; correct it there or shortly before{}", hint(.template))]
    Syntax { line: usize, column: usize, why: String, template: bool },
    #[error(
        "line {line}, column {column}: the key {key:?} is there twice in one mapping; leave one of them out"
    )]
    Twice { line: usize, column: usize, key: String },
    #[error(
        "line {line}, column {column}: a list or mapping is a key here, which no manifest has; quote it if \
         it is a text{}",
        hint(.template)
    )]
    Key { line: usize, column: usize, template: bool },
    #[error(
        "line {line}, column {column}: lists and mappings are more than {DEPTH_MAX} deep in each other; is \
         this a manifest?"
    )]
    Deep { line: usize, column: usize },
    #[error(
        "line {line}, column {column}: with its aliases written out, the input is more than {} MiB; write it \
         with fewer aliases, or in parts", WEIGHT_MAX / 1024 / 1024
    )]
    Heavy { line: usize, column: usize },
    #[error("line {line}, column {column}: an alias of what it is a part of; write it out")]
    Circle { line: usize, column: usize },
}

/// What to do about templates, which people try.
fn hint(template: &bool) -> &'static str {
    if *template {
        "; it looks like a template: render it first (helm template, kustomize build)"
    } else {
        ""
    }
}

/// A document of a stream.
#[derive(Debug)]
pub struct Document {
    /// What is in it.
    pub root: Node,
    /// The line where it begins, from 1.
    pub line: usize,
    /// Where its `---` is, if it has one.
    pub marker: Option<usize>,
    /// Where what is in it stands, from its first character to the end of its last line.
    pub content: Range<usize>,
    /// What this program cannot write again, if there is anything.
    pub unwritable: Option<&'static str>,
}

/// A list or mapping that is not at its end.
enum Open {
    List(Vec<Node>),
    Map(Vec<(Scalar, Node)>, HashSet<String>, Option<Scalar>),
}

impl Open {
    /// Puts a node into it.
    fn add(&mut self, node: Node, (line, column): (usize, usize), template: bool) -> Result<(), Unreadable> {
        match self {
            Open::List(items) => items.push(node),
            Open::Map(entries, keys, key) => match (key.take(), node) {
                (Some(key), value) => entries.push((key, value)),
                (None, Node::Scalar(scalar)) => {
                    if !keys.insert(scalar.text().to_owned()) {
                        return Err(Unreadable::Twice { line, column, key: scalar.text().to_owned() });
                    }
                    *key = Some(scalar);
                }
                (None, _) => return Err(Unreadable::Key { line, column, template }),
            },
        }
        Ok(())
    }
}

/// Reads all of it.
pub fn documents(text: &str) -> Result<Vec<Document>, Unreadable> {
    let template = text.contains("{{");
    let (offset, draft) = (Offset::new(text), Draft::default());
    Reader { text, template, offset, weight: 0, draft, open: Vec::new(), anchors: HashMap::new() }.read()
}

struct Reader<'a> {
    text: &'a str,
    template: bool,
    offset: Offset<'a>,
    weight: usize,
    draft: Draft,
    /// The lists and mappings that are not at their ends, the innermost last, each with its anchor or 0.
    open: Vec<(Open, usize)>,
    /// What aliases of this document may stand for.
    anchors: HashMap<usize, Node>,
}

/// A document that is not at its end.
#[derive(Default)]
struct Draft {
    root: Option<Node>,
    marker: Option<usize>,
    /// Where its content begins: the offset, and the line.
    start: Option<(usize, usize)>,
    /// How many characters into the text its content ends, for all that was read.
    end: usize,
    unwritable: Option<&'static str>,
}

impl Reader<'_> {
    fn read(mut self) -> Result<Vec<Document>, Unreadable> {
        let mut documents = Vec::new();
        let mut parser = Parser::new_from_str(self.text);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| self.syntax(&error))?;
            let at = position(span.start);
            match event {
                Event::DocumentStart(explicit) => {
                    let marker = explicit.then(|| self.offset.of(span.start.index()));
                    self.draft = Draft { marker, ..Draft::default() };
                    continue;
                }
                Event::DocumentEnd => {
                    let here = (self.offset.of(span.start.index()), at.0);
                    documents.push(self.finished(here));
                    continue;
                }
                Event::Nothing | Event::StreamStart | Event::StreamEnd => continue,
                _ => {}
            }
            if self.draft.start.is_none() {
                self.draft.start = Some((self.offset.of(span.start.index()), at.0));
            }
            // A block list or mapping ends, without a character of its own, where the next thing begins.
            if !span.is_empty() {
                self.draft.end = self.draft.end.max(span.end.index());
            }
            self.content(event, at)?;
        }
        Ok(documents)
    }

    /// The document that ends here.
    fn finished(&mut self, here: (usize, usize)) -> Document {
        self.anchors.clear();
        let Draft { root, marker, start, end, unwritable } = std::mem::take(&mut self.draft);
        let (from, line) = start.unwrap_or(here);
        let content = from..self.line_end(from, end);
        Document { root: root.unwrap_or(Node::literal("null")), line, marker, content, unwritable }
    }

    /// Takes in what stands in a document.
    fn content(&mut self, event: Event<'_>, at: (usize, usize)) -> Result<(), Unreadable> {
        let (node, anchor) = match event {
            Event::Alias(id) => (self.alias(id, at)?, 0),
            Event::Scalar(text, style, anchor, tag) => {
                self.look_at_tag(tag.as_deref());
                let node = Node::Scalar(self.scalar(text, style));
                self.weigh(&node, at)?;
                (node, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.look_at_tag(tag.as_deref());
                return self.open((Open::List(Vec::new()), anchor), at);
            }
            Event::MappingStart(anchor, tag) => {
                self.look_at_tag(tag.as_deref());
                return self.open((Open::Map(Vec::new(), HashSet::new(), None), anchor), at);
            }
            _ => match self.open.pop() {
                Some((Open::List(items), anchor)) => (Node::List(items), anchor),
                Some((Open::Map(entries, ..), anchor)) => (Node::Map(entries), anchor),
                None => return Ok(()),
            },
        };
        if anchor > 0 {
            self.weigh(&node, at)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.draft.root = Some(node),
            Some((parent, _)) => parent.add(node, at, self.template)?,
        }
        Ok(())
    }

    /// What an alias stands for.
    fn alias(&mut self, id: usize, (line, column): (usize, usize)) -> Result<Node, Unreadable> {
        let node = self.anchors.get(&id).cloned().ok_or(Unreadable::Circle { line, column })?;
        if self.open.len() + depth(&node) > DEPTH_MAX {
            return Err(Unreadable::Deep { line, column });
        }
        self.weigh(&node, (line, column))?;
        Ok(node)
    }

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle) -> Scalar {
        if style != ScalarStyle::Plain {
            return Scalar::Text(Cow::into_owned(text));
        }
        let is_key = matches!(self.open.last(), Some((Open::Map(_, _, None), _)));
        match &*text {
            "<<" => self.draft.unwritable = Some("a merge key (<<)"),
            // It ends the content of a document without a character that says so.
            "" if is_key => self.draft.unwritable = Some("an empty key (?)"),
            _ => {}
        }
        Scalar::unquoted(&text)
    }

    /// A tag says what a value is; only the one that says what it is anyway could be left out.
    fn look_at_tag(&mut self, tag: Option<&Tag>) {
        if tag.is_some() {
            self.draft.unwritable.get_or_insert("a tag (!)");
        }
    }

    fn open(&mut self, what: (Open, usize), at: (usize, usize)) -> Result<(), Unreadable> {
        let (line, column) = at;
        if self.open.len() >= DEPTH_MAX {
            return Err(Unreadable::Deep { line, column });
        }
        self.weigh(&Node::List(Vec::new()), at)?;
        self.open.push(what);
        Ok(())
    }

    /// Counts what is kept, before it is.
    fn weigh(&mut self, node: &Node, (line, column): (usize, usize)) -> Result<(), Unreadable> {
        self.weight += weight(node);
        if self.weight > WEIGHT_MAX { Err(Unreadable::Heavy { line, column }) } else { Ok(()) }
    }

    /// The end of the last line that the content is on, the line break included.
    fn line_end(&self, from: usize, end: usize) -> usize {
        let end = self.offset.clone().of(end).max(from);
        let last = self.text.get(from..end).map_or(from, |content| from + content.trim_end().len());
        let rest = self.text.get(last..).unwrap_or_default();
        if last == from { from } else { last + rest.find('\n').map_or(rest.len(), |at| at + 1) }
    }

    fn syntax(&self, error: &saphyr_parser::ScanError) -> Unreadable {
        let (line, column) = position(*error.marker());
        Unreadable::Syntax { line, column, why: error.info().to_owned(), template: self.template }
    }
}

fn weight(node: &Node) -> usize {
    NODE_WEIGHT
        + match node {
            Node::Scalar(scalar) => scalar.text().len(),
            Node::List(items) => items.iter().map(weight).sum(),
            Node::Map(entries) => {
                entries.iter().map(|(key, value)| key.text().len() + NODE_WEIGHT + weight(value)).sum()
            }
        }
}

/// How many lists and mappings are in each other here.
fn depth(node: &Node) -> usize {
    match node {
        Node::Scalar(_) => 0,
        Node::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Node::Map(entries) => 1 + entries.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
    }
}

/// The line and column for people.
fn position(marker: Marker) -> (usize, usize) {
    (marker.line(), marker.col() + 1)
}

/// Turns the parser's indices of characters, which only grow, into offsets of bytes.
#[derive(Clone)]
struct Offset<'a> {
    text: &'a str,
    characters: usize,
    bytes: usize,
}

impl<'a> Offset<'a> {
    fn new(text: &'a str) -> Offset<'a> {
        Offset { text, characters: 0, bytes: 0 }
    }

    fn of(&mut self, character: usize) -> usize {
        if character < self.characters {
            (self.characters, self.bytes) = (0, 0);
        }
        let rest = self.text.get(self.bytes..).unwrap_or_default();
        let ahead = character - self.characters;
        self.bytes += rest.char_indices().nth(ahead).map_or(rest.len(), |(at, _)| at);
        self.characters = character;
        self.bytes
    }
}
