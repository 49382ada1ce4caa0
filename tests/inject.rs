//! `bellwether inject` on whole files, by the real binary. What comes out for each file of `tests/inject/`
//! stands beside it: the output as `NAME.out`, what is said as `NAME.err`. `BELLWETHER_REWRITE=1 cargo test
//! --test inject` writes them anew; read the difference.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The files, with the flags they are read with and the exit code.
const FILES: [(&str, &[&str], i32); 11] = [
    ("statefulset", &["--safety", "majority", "--image", "registry.example/bellwether:1"], 0),
    ("deployment", &[], 0),
    (
        "secured",
        &["--network-policy", "--peer-secret", "web-peers/v1", "--", "--priority", "50", "--lease=3s"],
        0,
    ),
    ("list", &["--ordinary-container"], 0),
    ("live", &["--safety", "majority", "--state-claim", "data"], 0),
    ("several", &[], 0),
    ("json", &[], 0),
    ("refused", &[], 0),
    ("nothing", &[], 0),
    ("broken", &[], 2),
    ("template", &[], 2),
];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/inject").join(name)
}

fn inject(input: &[u8], flags: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bellwether"))
        .arg("inject")
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program reads all before it writes, or ends and closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn is_as_written(name: &str, found: &str) {
    if std::env::var_os("BELLWETHER_REWRITE").is_some() {
        fs::write(path(name), found).unwrap();
    }
    let expected = fs::read_to_string(path(name)).unwrap();
    assert_eq!(found, expected, "tests/inject/{name} says otherwise");
}

#[test]
fn each_file_becomes_what_stands_beside_it() {
    for (name, flags, code) in FILES {
        let output = inject(&fs::read(path(&format!("{name}.yaml"))).unwrap(), flags);
        assert_eq!(output.status.code(), Some(code), "{name}: {}", text(&output.stderr));
        is_as_written(&format!("{name}.out"), &text(&output.stdout));
        is_as_written(&format!("{name}.err"), &text(&output.stderr));
    }
}

#[test]
fn line_ends_stay_of_one_kind() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    for (name, flags, code) in FILES {
        let input = fs::read_to_string(path(&format!("{name}.yaml"))).unwrap();
        let output = inject(crlf(&input).as_bytes(), flags);
        assert_eq!(output.status.code(), Some(code), "{name}: {}", text(&output.stderr));
        is_as_written(&format!("{name}.err"), &text(&output.stderr));
        let expected = fs::read_to_string(path(&format!("{name}.out"))).unwrap();
        assert_eq!(text(&output.stdout), crlf(&expected), "{name}");
    }
}

#[test]
fn a_second_run_changes_nothing() {
    for (name, flags, _) in FILES.iter().filter(|(_, _, code)| *code == 0) {
        let once = inject(&fs::read(path(&format!("{name}.yaml"))).unwrap(), flags);
        let twice = inject(&once.stdout, flags);
        assert_eq!(text(&twice.stdout), text(&once.stdout), "{name}");
    }
}

/// What comes out of `--uninject` has nothing of ours, and is a fixed point of both. Injected and taken out
/// again it is the same, byte for byte. That it means what the original did is tested on trees, in
/// src/inject/tests.rs.
#[test]
fn what_was_put_in_is_taken_out() {
    for (name, flags, _) in FILES.iter().filter(|(_, _, code)| *code == 0) {
        let injected = inject(&fs::read(path(&format!("{name}.yaml"))).unwrap(), flags).stdout;
        let bare = inject(&injected, &["--uninject"]).stdout;
        let ours = ["bellwether/injected", "name: bellwether", "web-bellwether", "api-bellwether"];
        let left = ours.iter().find(|ours| *name != "refused" && text(&bare).contains(**ours));
        assert_eq!(left, None, "{name}");
        let again = inject(&inject(&bare, flags).stdout, &["--uninject"]).stdout;
        assert_eq!(text(&again), text(&bare), "{name}");
    }
    let refused = fs::read(path("refused.yaml")).unwrap();
    assert_eq!(text(&inject(&refused, &["--uninject"]).stdout), text(&refused), "nothing in it is ours");
}

#[test]
fn strict_writes_nothing_when_something_is_left_as_it_is() {
    let refused = fs::read(path("refused.yaml")).unwrap();
    let output = inject(&refused, &["--strict"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(text(&output.stderr).contains("error: nothing was written, because of --strict"));
    let fine = fs::read(path("deployment.yaml")).unwrap();
    assert_eq!(inject(&fine, &["--strict"]).status.code(), Some(0));
}

#[test]
fn a_file_is_read_as_stdin_is() {
    let file = path("deployment.yaml");
    let named = inject(b"", &[file.to_str().unwrap()]);
    assert_eq!(text(&named.stdout), fs::read_to_string(path("deployment.out")).unwrap());
    let missing = inject(b"", &["no-such-file.yaml"]);
    assert_eq!((missing.status.code(), missing.stdout.len()), (Some(1), 0));
    assert!(text(&missing.stderr).contains("no-such-file.yaml cannot be read"));
}

#[test]
fn what_is_too_large_or_no_text_is_refused_whole() {
    for (input, words) in [
        (vec![b'#'; 32 * 1024 * 1024 + 1], "larger than 32 MiB"),
        (b"a: b\nc: \xff".to_vec(), "line 2, column 4: not UTF-8"),
    ] {
        let output = inject(&input, &[]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}
