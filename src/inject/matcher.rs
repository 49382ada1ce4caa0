//! Compares a document with a tree while it is read, without a second tree.

use super::builder::{Awaited, Fault, Sink};
use super::tree::{Node, Scalar};
use std::slice::Iter;

/// What a document is, compared with a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matched {
    /// Null, which does not count as a document.
    Empty,
    Same,
    Other,
}

impl Matched {
    /// What this tree is, compared with the one that is wanted, if one is.
    pub fn of(found: &Node, wanted: Option<&Node>) -> Matched {
        match found {
            found if found.is_absent(&[]) => Matched::Empty,
            found if Some(found) == wanted => Matched::Same,
            _ => Matched::Other,
        }
    }
}

/// What is wanted next, at some depth.
enum Wanted<'a> {
    Items(Iter<'a, Node>),
    /// Entries, and the value of the key that was there last.
    Entries(Iter<'a, (Scalar, Node)>, Option<&'a Node>),
}

/// Expects the parts of this tree in its order. It knows no aliases, which a tree does not have.
pub struct Matcher<'a> {
    root: Option<&'a Node>,
    open: Vec<Wanted<'a>>,
    matched: Matched,
}

impl<'a> Matcher<'a> {
    pub fn new(root: &'a Node) -> Matcher<'a> {
        Matcher { root: Some(root), open: Vec::new(), matched: Matched::Same }
    }

    /// The node that is wanted here; none: a key is, or nothing.
    fn node(&mut self) -> Option<&'a Node> {
        match self.open.last_mut() {
            None => self.root.take(),
            Some(Wanted::Items(items)) => items.next(),
            Some(Wanted::Entries(_, value)) => value.take(),
        }
    }

    fn check(&mut self, same: bool) -> Result<(), Fault> {
        if !same {
            self.matched = Matched::Other;
        }
        Ok(())
    }
}

impl Sink for Matcher<'_> {
    type Document = Matched;

    fn awaits(&self) -> Awaited {
        match self.open.last() {
            None => Awaited::Root,
            Some(Wanted::Items(_)) => Awaited::Item,
            Some(Wanted::Entries(_, None)) => Awaited::Key,
            Some(Wanted::Entries(_, Some(_))) => Awaited::Value,
        }
    }

    fn scalar(&mut self, scalar: Scalar, _anchor: usize) -> Result<(), Fault> {
        if let Some(Wanted::Entries(entries, value @ None)) = self.open.last_mut() {
            let Some((key, node)) = entries.next() else { return self.check(false) };
            *value = Some(node);
            return self.check(*key == scalar);
        }
        let is_root = self.open.is_empty();
        let found = Node::Scalar(scalar);
        let same = self.node() == Some(&found);
        if is_root && found.is_absent(&[]) {
            self.matched = Matched::Empty;
            return Ok(());
        }
        self.check(same)
    }

    fn alias(&mut self, _anchor: usize) -> Result<(), Fault> {
        self.check(false)
    }

    fn list(&mut self, _anchor: usize) -> Result<(), Fault> {
        let items = match self.node() {
            Some(Node::List(items)) => items.iter(),
            _ => {
                self.matched = Matched::Other;
                Iter::default()
            }
        };
        self.open.push(Wanted::Items(items));
        Ok(())
    }

    fn map(&mut self, _anchor: usize) -> Result<(), Fault> {
        let entries = match self.node() {
            Some(Node::Map(entries)) => entries.iter(),
            _ => {
                self.matched = Matched::Other;
                Iter::default()
            }
        };
        self.open.push(Wanted::Entries(entries, None));
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let over = match self.open.pop() {
            Some(Wanted::Items(mut items)) => items.next().is_none(),
            Some(Wanted::Entries(mut entries, value)) => entries.next().is_none() && value.is_none(),
            None => false,
        };
        self.check(over)
    }

    fn finish(&mut self) -> Matched {
        self.matched
    }
}
