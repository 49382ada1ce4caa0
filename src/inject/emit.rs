//! Writes a tree as YAML that every reader understands alike, or as JSON.
//!
//! Written by hand, because an emitter that takes values would decide what an unquoted `yes` or `0123` means;
//! this one writes what stood there. What it has written is read again and compared before it is printed
//! (`super::rewrite`).

use super::tree::{Node, Scalar, is_word};
use std::borrow::Cow;

/// The tree as block YAML, with a line break at its end.
pub fn yaml(node: &Node) -> String {
    let mut out = String::new();
    match node {
        Node::Map(entries) if !entries.is_empty() => map(&mut out, entries, 0),
        Node::List(items) if !items.is_empty() => list(&mut out, items, 0),
        other => value(&mut out, other, 0),
    }
    out
}

fn indent(out: &mut String, columns: usize) {
    out.extend(std::iter::repeat_n(' ', columns));
}

/// A mapping's entries; the cursor is in the column of its keys.
fn map(out: &mut String, entries: &[(Scalar, Node)], column: usize) {
    for (number, (key, node)) in entries.iter().enumerate() {
        if number > 0 {
            indent(out, column);
        }
        out.push_str(&on_one_line(key));
        out.push(':');
        match node {
            Node::Map(inner) if !inner.is_empty() => {
                out.push('\n');
                indent(out, column + 2);
                map(out, inner, column + 2);
            }
            // As kubectl writes it: a list stands in the column of its key.
            Node::List(items) if !items.is_empty() => {
                out.push('\n');
                indent(out, column);
                list(out, items, column);
            }
            other => {
                out.push(' ');
                value(out, other, column + 2);
            }
        }
    }
}

/// A list's items; the cursor is in the column of their dashes.
fn list(out: &mut String, items: &[Node], column: usize) {
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            indent(out, column);
        }
        out.push_str("- ");
        match item {
            Node::Map(entries) if !entries.is_empty() => map(out, entries, column + 2),
            Node::List(inner) if !inner.is_empty() => list(out, inner, column + 2),
            other => value(out, other, column + 2),
        }
    }
}

/// What needs no lines of its own, or is a block of lines, which begin in this column.
fn value(out: &mut String, node: &Node, column: usize) {
    match node {
        Node::Map(_) => out.push_str("{}"),
        Node::List(_) => out.push_str("[]"),
        Node::Scalar(Scalar::Text(text)) if is_block(text) => {
            out.push_str(if text.ends_with('\n') { "|\n" } else { "|-\n" });
            for line in text.lines() {
                // An empty line is the same without spaces.
                indent(out, if line.is_empty() { 0 } else { column.max(2) });
                out.push_str(line);
                out.push('\n');
            }
            return;
        }
        Node::Scalar(scalar) => out.push_str(&on_one_line(scalar)),
    }
    out.push('\n');
}

/// Whether a text can be written as a literal block that is read back the same without further ado.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && !text.ends_with("\n\n")
        && text.lines().all(|line| !line.ends_with([' ', '\t']))
        && text.chars().all(|c| c == '\n' || c == '\t' || !is_special(c))
}

/// What cannot stand in YAML as it is, or is a line break to some.
fn is_special(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn on_one_line(scalar: &Scalar) -> Cow<'_, str> {
    match scalar {
        Scalar::Plain(text) => text.into(),
        Scalar::Text(text) if is_word(text) => Cow::Borrowed(text),
        Scalar::Text(text) => quoted(text).into(),
    }
}

/// In double quotes, as both JSON and YAML read it.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            // All of them fit into four digits.
            c if is_special(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The tree as JSON with a line break at its end, for a document that was JSON: its unquoted scalars are
/// JSON's.
pub fn json(node: &Node) -> String {
    let mut out = String::new();
    json_value(&mut out, node, 0);
    out.push('\n');
    out
}

fn json_value(out: &mut String, node: &Node, column: usize) {
    let (brackets, count) = match node {
        Node::Scalar(Scalar::Plain(text)) => return out.push_str(text),
        Node::Scalar(Scalar::Text(text)) => return out.push_str(&quoted(text)),
        Node::Map(entries) => (['{', '}'], entries.len()),
        Node::List(items) => (['[', ']'], items.len()),
    };
    out.push(brackets[0]);
    for number in 0..count {
        out.push_str(if number > 0 { ",\n" } else { "\n" });
        indent(out, column + 4);
        match node {
            Node::Map(entries) => {
                if let Some((key, value)) = entries.get(number) {
                    out.push_str(&quoted(key.text()));
                    out.push_str(": ");
                    json_value(out, value, column + 4);
                }
            }
            Node::List(items) => {
                if let Some(item) = items.get(number) {
                    json_value(out, item, column + 4);
                }
            }
            Node::Scalar(_) => {}
        }
    }
    if count > 0 {
        out.push('\n');
        indent(out, column);
    }
    out.push(brackets[1]);
}
