//! Builds the tree of a document from its parts, within bounds.

use super::tree::{Node, Scalar};
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

/// How deep lists and mappings may be in each other; a StatefulSet needs about 15.
const DEPTH_MAX: usize = 64;
/// How much all documents may be together once their aliases are written out: bytes of text, and
/// [`NODE_WEIGHT`] for a node.
pub const WEIGHT_MAX: usize = 512 * 1024 * 1024;
const NODE_WEIGHT: usize = 32;
/// A mapping of more keys than these has an index of them.
const SEARCHED_KEYS_MAX: usize = 16;

/// Why a document is none that a manifest may be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    #[error("{0}; correct it there or shortly before")]
    Syntax(String),
    #[error("the key {0:?} is there twice in one mapping; leave one of them out")]
    Twice(String),
    #[error("a list or mapping is a key here, which no manifest has; quote it if it is a text")]
    Key,
    #[error("lists and mappings are more than {DEPTH_MAX} deep in each other; is this a manifest?")]
    Deep,
    #[error(
        "with its aliases written out, the input takes more than {} MiB; write it with fewer aliases, or in \
         parts", WEIGHT_MAX / 1024 / 1024
    )]
    Heavy,
    #[error("an alias of what it is a part of; write it out")]
    Circle,
}

/// What a part of a document is to the part that it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// It is all of the document.
    Root,
    /// An item of a list.
    Item,
    /// A key of a mapping.
    Key,
    /// The value of a key.
    Value,
}

/// Takes in the parts of documents, one after the other. An anchor is a number from 1 that an alias of the
/// same document names; 0 is none.
pub trait Sink {
    /// What a document is made into.
    type Document;

    /// What comes next.
    fn awaits(&self) -> Awaited;
    fn scalar(&mut self, scalar: Scalar, anchor: usize) -> Result<(), Fault>;
    fn alias(&mut self, anchor: usize) -> Result<(), Fault>;
    /// A list begins.
    fn list(&mut self, anchor: usize) -> Result<(), Fault>;
    /// A mapping begins.
    fn map(&mut self, anchor: usize) -> Result<(), Fault>;
    /// The innermost list or mapping ends.
    fn end(&mut self) -> Result<(), Fault>;
    /// The document ends.
    fn finish(&mut self) -> Self::Document;
}

/// A list or mapping that is not at its end.
enum Open {
    List(Vec<Node>),
    Map(Entries),
}

/// The entries of a mapping that is not at its end.
#[derive(Default)]
struct Entries {
    entries: Vec<(Scalar, Node)>,
    /// Hashes of the keys, once they are many; by random numbers, so that no input is made for them to meet.
    index: HashSet<u64>,
    /// The key whose value is to come.
    key: Option<Scalar>,
}

impl Entries {
    fn add_key(&mut self, key: Scalar) -> Result<(), Fault> {
        let perhaps_known = self.entries.len() < SEARCHED_KEYS_MAX || !self.is_first_hash(&key);
        if perhaps_known && self.entries.iter().any(|(known, _)| known.text() == key.text()) {
            return Err(Fault::Twice(key.text().to_owned()));
        }
        self.key = Some(key);
        Ok(())
    }

    /// Puts a key into the index, and says whether none of its hash was there.
    fn is_first_hash(&mut self, key: &Scalar) -> bool {
        let random = self.index.hasher().clone();
        let hash = |key: &Scalar| random.hash_one(key.text());
        if self.index.is_empty() {
            self.index.extend(self.entries.iter().map(|(known, _)| hash(known)));
        }
        self.index.insert(hash(key))
    }
}

impl Open {
    fn add(&mut self, node: Node) -> Result<(), Fault> {
        match self {
            Open::List(items) => items.push(node),
            Open::Map(map) => match (map.key.take(), node) {
                (Some(key), value) => map.entries.push((key, value)),
                (None, Node::Scalar(key)) => map.add_key(key)?,
                (None, _) => return Err(Fault::Key),
            },
        }
        Ok(())
    }
}

/// Builds the tree of each document; null where nothing was in it.
pub struct Builder {
    root: Option<Node>,
    /// The lists and mappings that are not at their ends, the innermost last, each with its anchor.
    open: Vec<(Open, usize)>,
    /// What aliases of this document may stand for.
    anchors: HashMap<usize, Node>,
    /// How much all documents are so far, and may be.
    weight: usize,
    weight_max: usize,
}

impl Builder {
    /// For documents that are not heavier than this together.
    pub fn new(weight_max: usize) -> Builder {
        Builder { root: None, open: Vec::new(), anchors: HashMap::new(), weight: 0, weight_max }
    }

    fn open(&mut self, what: Open, anchor: usize) -> Result<(), Fault> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Fault::Deep);
        }
        self.weigh(&Node::List(Vec::new()))?;
        self.open.push((what, anchor));
        Ok(())
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Fault> {
        if anchor > 0 {
            self.weigh(&node)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some((parent, _)) => parent.add(node)?,
        }
        Ok(())
    }

    /// Counts what is kept, before it is.
    fn weigh(&mut self, node: &Node) -> Result<(), Fault> {
        self.weight += weight(node);
        if self.weight > self.weight_max { Err(Fault::Heavy) } else { Ok(()) }
    }
}

impl Sink for Builder {
    type Document = Node;

    fn awaits(&self) -> Awaited {
        match self.open.last() {
            None => Awaited::Root,
            Some((Open::List(_), _)) => Awaited::Item,
            Some((Open::Map(Entries { key: None, .. }), _)) => Awaited::Key,
            Some((Open::Map(_), _)) => Awaited::Value,
        }
    }

    fn scalar(&mut self, scalar: Scalar, anchor: usize) -> Result<(), Fault> {
        let node = Node::Scalar(scalar);
        self.weigh(&node)?;
        self.add(node, anchor)
    }

    fn alias(&mut self, anchor: usize) -> Result<(), Fault> {
        let node = self.anchors.get(&anchor).cloned().ok_or(Fault::Circle)?;
        if self.open.len() + depth(&node) > DEPTH_MAX {
            return Err(Fault::Deep);
        }
        self.weigh(&node)?;
        self.add(node, 0)
    }

    fn list(&mut self, anchor: usize) -> Result<(), Fault> {
        self.open(Open::List(Vec::new()), anchor)
    }

    fn map(&mut self, anchor: usize) -> Result<(), Fault> {
        self.open(Open::Map(Entries::default()), anchor)
    }

    fn end(&mut self) -> Result<(), Fault> {
        match self.open.pop() {
            Some((Open::List(items), anchor)) => self.add(Node::List(items), anchor),
            Some((Open::Map(map), anchor)) => self.add(Node::Map(map.entries), anchor),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Node {
        self.anchors.clear();
        self.root.take().unwrap_or(Node::literal("null"))
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
