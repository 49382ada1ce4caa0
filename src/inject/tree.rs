//! A document as a tree that can be changed and written again without a scalar changing its meaning.

use std::borrow::Cow;
use std::collections::HashMap;

/// A scalar. YAML 1.1, which kubectl reads, and YAML 1.2 disagree about what some unquoted words mean. So
/// nothing here decides that: they are kept as they stand.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Scalar {
    /// Certainly a string: it was quoted, or a block, or is a word that every YAML reader takes for a string.
    Text(Cow<'static, str>),
    /// Unquoted, on one line: its reader decides what it means.
    Plain(String),
}

/// A node of a document, without its comments and style.
#[derive(Clone, Debug)]
pub enum Node {
    Scalar(Scalar),
    List(Vec<Node>),
    /// In the order of the source; each key once.
    Map(Vec<(Scalar, Node)>),
}

impl Scalar {
    /// What is written in the source, the quotes aside.
    pub fn text(&self) -> &str {
        match self {
            Scalar::Text(text) => text,
            Scalar::Plain(text) => text,
        }
    }

    /// What an unquoted scalar of the source is.
    pub fn unquoted(text: &str) -> Scalar {
        match text {
            "" => Scalar::Plain("null".to_owned()),
            // Only a string has several lines.
            _ if is_word(text) || text.contains('\n') => Scalar::Text(text.to_owned().into()),
            _ => Scalar::Plain(text.to_owned()),
        }
    }
}

/// Whether every YAML reader takes this for a string without quotes. It begins with a letter, and YAML 1.1
/// takes it neither for a truth value nor for null.
pub fn is_word(text: &str) -> bool {
    const NOT_STRINGS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-' | b':' | b'@'))
        && !text.ends_with(':')
        && !NOT_STRINGS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

impl Node {
    /// A string.
    pub fn string(text: impl Into<Cow<'static, str>>) -> Node {
        Node::Scalar(Scalar::Text(text.into()))
    }

    /// A number or a truth value.
    pub fn literal(value: impl ToString) -> Node {
        Node::Scalar(Scalar::Plain(value.to_string()))
    }

    /// A mapping of these.
    pub fn map<const N: usize>(entries: [(&'static str, Node); N]) -> Node {
        Node::Map(entries.into_iter().map(|(key, value)| (Scalar::Text(key.into()), value)).collect())
    }

    /// The value of this key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Node::Map(entries) => entries.iter().find(|(k, _)| k.text() == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The value at the end of these keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The text of the scalar at the end of these keys.
    pub fn text_at(&self, path: &[&str]) -> Option<&str> {
        match self.at(path) {
            Some(Node::Scalar(scalar)) => Some(scalar.text()),
            _ => None,
        }
    }

    /// The items of the list at the end of these keys; none where there is no list.
    pub fn items(&self, path: &[&str]) -> &[Node] {
        match self.at(path) {
            Some(Node::List(items)) => items,
            _ => &[],
        }
    }

    /// Whether there is nothing at the end of these keys, or null.
    pub fn is_absent(&self, path: &[&str]) -> bool {
        match self.at(path) {
            None => true,
            Some(Node::Scalar(Scalar::Plain(text))) => {
                matches!(text.as_str(), "null" | "Null" | "NULL" | "~")
            }
            Some(_) => false,
        }
    }

    /// The value of this key to change, put in as null if it is missing; none if this is no mapping.
    fn entry(&mut self, key: &str) -> Option<&mut Node> {
        let Node::Map(entries) = self else { return None };
        let at = entries.iter().position(|(k, _)| k.text() == key).unwrap_or_else(|| {
            entries.push((Scalar::Text(key.to_owned().into()), Node::literal("null")));
            entries.len() - 1
        });
        entries.get_mut(at).map(|(_, value)| value)
    }

    /// Changes the value at the end of these keys; mappings on the way that are missing or null are put in.
    /// What is in the way otherwise has been refused before.
    pub fn change(&mut self, path: &[&str], change: impl FnOnce(&mut Node)) {
        let Some((key, rest)) = path.split_first() else { return change(self) };
        if self.is_absent(&[]) {
            *self = Node::Map(Vec::new());
        }
        if let Some(value) = self.entry(key) {
            value.change(rest, change);
        }
    }

    /// This mapping with another value of a key that it has.
    pub fn with(&self, key: &str, value: Node) -> Node {
        let Node::Map(entries) = self else { return self.clone() };
        let mut value = Some(value);
        let entry = |(k, v): &(Scalar, Node)| {
            let value = if k.text() == key { value.take() } else { None };
            (k.clone(), value.unwrap_or_else(|| v.clone()))
        };
        Node::Map(entries.iter().map(entry).collect())
    }

    /// Puts an item into the list at the end of these keys, at its front or at its end.
    pub fn insert(&mut self, path: &[&str], item: Node, front: bool) {
        self.change(path, |list| {
            if !matches!(list, Node::List(_)) {
                *list = Node::List(Vec::new());
            }
            if let Node::List(items) = list {
                items.insert(if front { 0 } else { items.len() }, item);
            }
        });
    }

    /// Takes out what is at the end of these keys, and says whether it was there.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let (Some((key, rest)), Node::Map(entries)) = (path.split_first(), self) else { return false };
        let Some(at) = entries.iter().position(|(k, _)| k.text() == *key) else { return false };
        if rest.is_empty() {
            entries.remove(at);
            return true;
        }
        entries.get_mut(at).is_some_and(|(_, value)| value.remove(rest))
    }

    /// Takes the items with this name out of the list at the end of these keys; a list that is empty then
    /// goes too.
    pub fn remove_named(&mut self, path: &[&str], name: &str) {
        if !self.items(path).iter().any(|item| item.text_at(&["name"]) == Some(name)) {
            return;
        }
        self.change(path, |list| {
            if let Node::List(items) = list {
                items.retain(|item| item.text_at(&["name"]) != Some(name));
            }
        });
        self.remove_if_empty(path);
    }

    /// Takes out the list or mapping at the end of these keys if nothing is in it.
    pub fn remove_if_empty(&mut self, path: &[&str]) {
        let empty = match self.at(path) {
            Some(Node::List(items)) => items.is_empty(),
            Some(Node::Map(entries)) => entries.is_empty(),
            _ => false,
        };
        if empty {
            self.remove(path);
        }
    }
}

/// Whether both mean the same: the order of a mapping's keys does not count.
impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        match (self, other) {
            (Node::Scalar(a), Node::Scalar(b)) => a == b,
            (Node::List(a), Node::List(b)) => a == b,
            (Node::Map(a), Node::Map(b)) if a.len() != b.len() => false,
            // Mostly the order is the same, and nothing has to be searched.
            (Node::Map(a), Node::Map(b)) if a.iter().zip(b).all(|((a, _), (b, _))| a == b) => {
                a.iter().zip(b).all(|((_, a), (_, b))| a == b)
            }
            (Node::Map(a), Node::Map(b)) => {
                let b: HashMap<&Scalar, &Node> = b.iter().map(|(key, value)| (key, value)).collect();
                a.iter().all(|(key, value)| b.get(key) == Some(&value))
            }
            _ => false,
        }
    }
}
