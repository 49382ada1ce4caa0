//! What is JSON is read as JSON, and stays JSON.

use super::*;

/// A workload in JSON whose image, and a field that stands before all others, are these.
fn workload(image: &str, first: &str) -> String {
    let text = emit::json(&roots(WEB)[0]).replacen("\"app:1\"", image, 1);
    assert!(text.contains(image));
    text.replacen('{', &format!("{{ {first},"), 1)
}

/// What a text in JSON says.
fn value(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn a_pair_of_surrogates_is_a_character() {
    let text = workload("\"\\uD83D\\uDE00\"", "\"\\ud83d\\ude00\": 1");
    for text in [text.clone(), format!("a: b\n--- {text}---\nc: d\n")] {
        let injected = done(&text, &args());
        assert_eq!(injected.remarks, [""; 0]);
        assert!(injected.text.contains("\"\u{1f600}\": 1"), "{}", injected.text);
        assert!(injected.text.contains("\"image\": \"\u{1f600}\""), "{}", injected.text);
        assert_eq!(done(&injected.text, &args()).text, injected.text, "a second run changes nothing");
        let workloads =
            |text: &str| roots(text).into_iter().filter(|root| root.get("spec").is_some()).count();
        assert_eq!(workloads(&done(&injected.text, &uninjecting()).text), 1);
    }
    // What is not changed stays as it is, to the byte.
    let beside = format!("{{\"a\": \"\\uD83D\\uDE00\"}}\n---\n{WEB}");
    assert!(done(&beside, &args()).text.starts_with("{\"a\": \"\\uD83D\\uDE00\"}\n---\n"));
    // In a text that is not quoted, they are no more than letters.
    let block = format!("{WEB}x: |\n  {{\"a\": \"\\uD83D\\uDE00\"}}\n");
    assert!(done(&block, &args()).text.contains("  {\"a\": \"\\uD83D\\uDE00\"}\n"));
}

#[test]
fn half_a_pair_is_refused_with_its_place() {
    for half in ["\\ud83d", "\\ude00\\ud83d", "\\ud83d!"] {
        let text = format!("---\na: b\n---\n\n{}", workload("\"a\"", &format!("\"x\": \"{half}\"")));
        let error = transform(&text, &args()).unwrap_err().to_string();
        assert!(error.starts_with("line 5, column 8: half of a surrogate pair"), "{error}");
    }
    // YAML's readers, kubectl's among them, know no pairs.
    let error = transform("a: b\nc: \"\\uD83D\\uDE00\"\n", &args()).unwrap_err().to_string();
    assert!(error.starts_with("line 2, column") && error.contains("only JSON has pairs"), "{error}");
}

#[test]
fn all_of_json_is_read() {
    let key = "k".repeat(3000);
    for field in [
        &*format!("\"{key}\": 1"),
        "\"a\"\n:\n1",
        "\"a\": [1.0, 1e3, -0, 12345678901234567890123, 0.10, true, null]",
        "\"\\/\\b\\f\\n\\r\\t\\\\\\\"\\u0000\": \"\u{7f}\u{feff}\u{2028}\"",
        "\"a\": \"\", \"\": [[], {}, [ ], { }]",
        "\"a\":\"---\",\"b\": \"]}, : \\\\\"",
    ] {
        let text = workload("\"a\"", field);
        let injected = done(&text, &args()).text;
        let (found, _) = injected.split_once("---\n{").unwrap();
        let (mut found, wanted) = (value(found), value(&text));
        found["spec"]["template"]["spec"].as_object_mut().unwrap().remove("initContainers").unwrap();
        found["metadata"].as_object_mut().unwrap().remove("annotations").unwrap();
        assert_eq!(found, wanted, "{field}");
    }
    let numbers = "1.0, 1e3, -0, 12345678901234567890123, 0.10";
    let text = workload("\"a\"", &format!("\"x\": [{numbers}]"));
    let injected = done(&text, &args()).text;
    for number in numbers.split(", ") {
        assert!(injected.contains(&format!(" {number}")), "{number} stays as it is written");
    }
}

#[test]
fn what_is_wrong_with_json_is_named() {
    let place = |text: &str| match transform(text, &args()) {
        Err(Trouble::Unreadable(error)) => error,
        other => panic!("{other:?}"),
    };
    let twice = place("{\"a\": 1,\n  \"\u{e9}\": 1, \"a\": 2}");
    assert_eq!((twice.line, twice.column, twice.why), (2, 11, Fault::Twice("a".to_owned())));
    assert_eq!(place(&format!("{}{}", "[".repeat(65), "]".repeat(65))).why, Fault::Deep);
    let many: String = (0..100).map(|n| format!("\"k{n}\": 1, ")).collect();
    assert_eq!(place(&format!("{{{many}\"k7\": 2}}")).why, Fault::Twice("k7".to_owned()));
}
