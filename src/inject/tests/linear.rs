//! Four times the input takes about four times as long, whatever the input is made of.

use super::*;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Four times the input may take this much longer. A linear program needs 4 times as long, a quadratic one 16
/// times.
const RATIO_MAX: f64 = 8.0;
/// How often each size is measured; the middle one counts.
const ROUNDS: usize = 3;

/// What this thread has computed for, whatever else the machine does.
fn computed() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap())
}

/// The middle one of the times in which this text is transformed.
fn median(text: &str, args: &InjectArgs) -> f64 {
    let mut times = [0.0; ROUNDS];
    for time in &mut times {
        let before = computed();
        let outcome = done(text, args);
        assert!(!outcome.refused, "{:?}", outcome.remarks.first());
        *time = (computed() - before).as_secs_f64();
    }
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

/// Measures a text of `size` parts against one of four times as many.
#[track_caller]
fn is_linear(what: &str, size: usize, args: &InjectArgs, text: impl Fn(usize) -> String) {
    let ratio = median(&text(4 * size), args) / median(&text(size), args);
    assert!(ratio < RATIO_MAX, "{what}: four times the input takes {ratio:.1} times as long");
}

/// Parts, one after the other, each made of its number.
fn times(size: usize, part: impl Fn(usize) -> String) -> String {
    (0..size).map(part).collect()
}

fn workload(number: usize) -> String {
    WEB.replace("web", &format!("web-{number}"))
}

/// A workload in block YAML with something more at its end.
fn with(more: impl Fn(usize) -> String) -> impl Fn(usize) -> String {
    move |size| format!("{WEB}x: {}", more(size))
}

#[test]
fn many_documents_are() {
    let args = args();
    let small = |size| times(size, |n| format!("---\na: {n}\n"));
    is_linear("documents", 2000, &args, small);
    is_linear("documents, one to change", 2000, &args, |size| format!("{}---\n{WEB}", small(size)));
    is_linear("documents with a directive each", 2000, &args, |size| {
        times(size, |n| format!("%YAML 1.2\n---\na: {n}\n...\n"))
    });
    is_linear("JSON documents", 2000, &args, |size| times(size, |n| format!("---\n{{\"a\": {n}}}\n")));
    is_linear("empty documents", 2000, &args, |size| "---\n".repeat(size));
    is_linear("lines between documents", 5000, &args, |size| format!("{WEB}{}---\n", "# c\n\n".repeat(size)));
}

#[test]
fn many_workloads_are() {
    let stream = |size| times(size, |n| format!("---\n{}", workload(n)));
    let list = |size| {
        let item = |n| format!("- {}\n", workload(n).trim_end().replace('\n', "\n  "));
        format!("kind: List\nitems:\n{}", times(size, item))
    };
    is_linear("workloads", 40, &args(), stream);
    is_linear("workloads of majority", 40, &majority(), stream);
    is_linear("a list of workloads", 60, &args(), list);
    let taken_out = |text: String| done(&text, &args()).text;
    is_linear("workloads to take out", 40, &uninjecting(), |size| taken_out(stream(size)));
    is_linear("a list to take out", 40, &uninjecting(), |size| taken_out(list(size)));
    is_linear("a second run", 40, &args(), |size| taken_out(stream(size)));
    let json = |size| {
        let items: Vec<String> =
            documents(&list(size)).unwrap().iter().map(|d| emit::json(&d.root)).collect();
        items.concat()
    };
    is_linear("a JSON list of workloads", 60, &args(), json);
}

#[test]
fn one_long_document_is() {
    let args = args();
    is_linear("list items", 2000, &args, with(|size| format!("\n{}", times(size, |n| format!("- {n}\n")))));
    is_linear("flow items", 2000, &args, with(|size| format!("[{}]", times(size, |n| format!("{n}, ")))));
    is_linear("keys", 2000, &args, with(|size| format!("\n{}", times(size, |n| format!("  k{n}: v\n")))));
    is_linear("aliases", 2000, &args, with(|size| format!("\n- &a b\n{}", "- *a\n".repeat(size))));
    is_linear("anchors", 2000, &args, with(|size| format!("\n{}", times(size, |n| format!("- &a{n} b\n")))));
    is_linear(
        "text of two bytes",
        2000,
        &args,
        with(|size| format!("\n{}", "- \u{e9}\u{e9}\n".repeat(size))),
    );
    // The annotation that says what is ours moves from the front to the end.
    let keys = |size| times(size, |n| format!("    k{n}: v\n"));
    is_linear("annotations", 2000, &args, |size| {
        let annotations = format!("  annotations:\n    bellwether/injected: \"true\"\n{}", keys(size));
        WEB.replacen("  name: web\n", &format!("  name: web\n{annotations}"), 1)
    });
}

#[test]
fn one_long_scalar_is() {
    let args = args();
    is_linear("plain", 10_000, &args, with(|size| "abcdefg".repeat(size)));
    is_linear("plain, many lines", 5000, &args, with(|size| format!("a\n{}", "  abcdefg\n".repeat(size))));
    is_linear("single quotes", 10_000, &args, with(|size| format!("'{}'", "abc''def".repeat(size))));
    is_linear("double quotes", 10_000, &args, with(|size| format!("\"{}\"", "abc\\ndef".repeat(size))));
    is_linear("literal", 5000, &args, with(|size| format!("|\n{}", "  abcdefg\n".repeat(size))));
    is_linear("folded", 5000, &args, with(|size| format!(">\n{}", "  abcdefg\n".repeat(size))));
    let json = |size| {
        let root = &documents(WEB).unwrap()[0].root;
        let mut root = root.clone();
        root.change(&["x"], |x| *x = Node::string("abc\n\"".repeat(size)));
        emit::json(&root)
    };
    is_linear("a string in JSON", 10_000, &args, json);
}
