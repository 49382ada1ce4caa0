//! The document of `/openapi.json`, held against the answers: its paths, its parameters, and the schema of
//! each answer. What the schemas use of JSON Schema is checked here, and no more.

use super::super::super::response;
use super::announced::announcing;
use super::*;
use crate::http::watch::{Form, Telling, event};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;

struct Document(Value);

impl Document {
    fn get() -> Document {
        Document(get("/openapi.json", &source(Role::Leading)).1)
    }

    /// What a part says, or what it refers to.
    fn resolve<'a>(&'a self, part: &'a Value) -> &'a Value {
        let Some(reference) = part["$ref"].as_str() else { return part };
        let siblings = part.as_object().unwrap().keys().filter(|key| *key != "$ref");
        assert!(siblings.into_iter().all(|key| key == "description"), "{part}");
        self.resolve(self.0.pointer(reference.strip_prefix('#').unwrap()).unwrap_or_else(|| panic!("{part}")))
    }

    fn component(&self, kind: &str, name: &str) -> &Value {
        self.resolve(&self.0["components"][kind][name])
    }

    /// The key of a status among an operation's responses, if it is there.
    fn key(&self, path: &str, method: &str, status: u16) -> Option<String> {
        let responses = &self.0["paths"][path][method]["responses"];
        let keys = [status.to_string(), format!("{}XX", status / 100)];
        keys.into_iter().find(|key| responses.get(key).is_some())
    }

    /// What an answer has that its description does not have, and the other way round.
    fn wrong_answer(&self, path: &str, method: &str, answer: &Answer) -> Vec<String> {
        let (status, headers, body) = answer;
        let at = format!("{method} {path} {status}");
        let Some(key) = self.key(path, method, *status) else { return vec![format!("{at}: no response")] };
        let response = self.resolve(&self.0["paths"][path][method]["responses"][&key]);
        let mut wrong = Vec::new();
        let sent: BTreeSet<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let none = serde_json::Map::new();
        let described = response["headers"].as_object().unwrap_or(&none);
        for (name, header) in described {
            if self.resolve(header)["required"] == true && !sent.contains(&**name) {
                wrong.push(format!("{at}: there is no header {name}"));
            }
        }
        for name in sent.difference(&["Server", "Cache-Control", "Content-Type"].into()) {
            if !described.contains_key(*name) {
                wrong.push(format!("{at}: the header {name} is not described"));
            }
        }
        // The body of a HEAD is left out when it is encoded.
        let body = if method == "head" { "" } else { body };
        let content = response["content"].as_object().unwrap_or(&none);
        let content_type = headers.iter().find(|(name, _)| name == "Content-Type").map(|(_, value)| value);
        match content_type.filter(|_| !body.is_empty()) {
            None if content.is_empty() => {}
            None => wrong.push(format!("{at}: there is no body")),
            Some(content_type) => match content.get(content_type) {
                None => wrong.push(format!("{at}: {content_type} is not described")),
                Some(media) => wrong.extend(self.wrong(&media["schema"], &read(content_type, body), &at)),
            },
        }
        wrong
    }

    /// What is wrong with a value, by a schema. A field that is not described counts too: clients ignore it,
    /// but this document is to have it.
    fn wrong(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let schema = self.resolve(schema);
        let mut wrong = Vec::new();
        let mut complain = |right: bool, what: String| {
            if !right {
                wrong.push(format!("{at}: {what}: {value}"));
            }
        };
        for (keyword, rule) in schema.as_object().unwrap() {
            match keyword.as_str() {
                // schemathesis looks at the patterns.
                "description" | "pattern" => {}
                "type" => complain(list(rule).any(|name| is_of_type(name, value)), format!("type {rule}")),
                "enum" => complain(list(rule).any(|one| one == value), format!("enum {rule}")),
                "format" => complain(is_of_format(rule, value), format!("format {rule}")),
                "minimum" => complain(compare(value, rule, |v, least| v >= least), format!("minimum {rule}")),
                "maximum" => complain(compare(value, rule, |v, most| v <= most), format!("maximum {rule}")),
                "required" => list(rule).for_each(|name| {
                    let there = value.get(name.as_str().unwrap()).is_some();
                    complain(!value.is_object() || there, format!("there is no {name}"));
                }),
                "properties" => {
                    for (name, field) in value.as_object().into_iter().flatten() {
                        match rule.get(name) {
                            None => complain(false, format!("{name} is not described")),
                            Some(schema) => wrong_in(self.wrong(schema, field, name), &mut complain),
                        }
                    }
                }
                "items" => {
                    for item in value.as_array().into_iter().flatten() {
                        wrong_in(self.wrong(rule, item, "item"), &mut complain);
                    }
                }
                "anyOf" => {
                    let one = list(rule).any(|schema| self.wrong(schema, value, at).is_empty());
                    complain(one, format!("none of {rule}"));
                }
                other => panic!("{at}: this test does not know the keyword {other}"),
            }
        }
        wrong
    }
}

fn wrong_in(inner: Vec<String>, complain: &mut impl FnMut(bool, String)) {
    inner.into_iter().for_each(|what| complain(false, what));
}

/// The items of a list; a value that is none is one item.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice).iter()
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("no type {other}"),
    }
}

/// A format concerns values of its own type alone, as `null` has none.
fn is_of_format(name: &Value, value: &Value) -> bool {
    match (name.as_str().unwrap(), value) {
        ("uuid", Value::String(text)) => text.parse::<Uuid>().is_ok(),
        ("date-time", Value::String(text)) => humantime::parse_rfc3339(text).is_ok(),
        ("int64", Value::Number(number)) => number.is_i64(),
        ("uuid" | "date-time" | "int64", _) => true,
        (other, _) => panic!("no format {other}"),
    }
}

fn compare(value: &Value, limit: &Value, holds: impl Fn(f64, f64) -> bool) -> bool {
    value.as_f64().is_none_or(|value| holds(value, limit.as_f64().unwrap()))
}

fn read(content_type: &str, body: &str) -> Value {
    match content_type {
        JSON => serde_json::from_str(body).unwrap(),
        _ => json!(body),
    }
}

/// One process in each state that shows itself in an answer.
fn states() -> Vec<Box<dyn Source>> {
    let mut states: Vec<Box<dyn Source>> = Vec::new();
    for role in [Role::Asking, Role::Electing, Role::Following, Role::Leading, Role::Resigning, Role::Leaving]
    {
        states.push(Box::new(source(role)));
        states.push(Box::new(paused(role)));
        states.push(Box::new(voting(role, None)));
        states.push(Box::new(later(voting(role, None), 900_600)));
        states.push(Box::new(Proven(source(role))));
    }
    let recovery =
        NotReady::Recovery { missing: vec!["web-0".to_owned()], differ: Vec::new(), records: None };
    states.push(Box::new(voting(Role::Asking, Some(recovery))));
    let mut ill = paused(Role::Leading);
    ill.0.health = Err("the driver is gone".to_owned());
    states.push(Box::new(ill));
    let mut dateless = source(Role::Following);
    Arc::make_mut(&mut dateless.0.status).leader.as_mut().unwrap().elected_at_ms = u64::MAX;
    states.push(Box::new(dateless));
    states.push(Box::new(cordoned_and_resigned()));
    states.extend(announcing().map(|state| Box::new(state) as Box<dyn Source>));
    states.push(Box::new(changes().0));
    states
}

const TARGETS: [&str; 30] = [
    "/",
    "/sse?after=",
    "/leader",
    "/watch",
    "/watch?after=000000000000000b-1",
    "/watch?after=x",
    "/watch?timeout=61s",
    "/is-leader",
    "/is-leader?standby=299",
    "/is-leader?standby=204",
    "/is-leader?standby=205",
    "/is-leader?standby=304",
    "/is-leader?standby=307",
    "/is-leader?standby=400",
    "/is-leader?standby=429",
    "/is-leader?standby=599",
    "/is-leader?standby=600",
    "/epoch",
    "/members",
    "/healthz",
    "/readyz",
    "/readyz?leader=known",
    "/readyz?leader=",
    "/metrics",
    "/openapi.json",
    "/redirect",
    "/redirect?\u{e4}",
    "/redirect/",
    "/redirect/a/b?c=/d",
    "/redirect/..",
];

/// What the document calls a target's path.
fn described(target: &str) -> &str {
    let path = target.split('?').next().unwrap();
    if path.starts_with("/redirect/") { "/redirect/{path}" } else { path }
}

const METHODS: [(Method, &str); 8] = [
    (Method::Get, "get"),
    (Method::Head, "head"),
    (Method::Post, "post"),
    (Method::Put, "put"),
    (Method::Delete, "delete"),
    (Method::Patch, "patch"),
    (Method::Options, "options"),
    (Method::Trace, "trace"),
];

#[test]
fn the_document_has_every_path_and_the_program_s_version() {
    let document = Document::get().0;
    let described: BTreeSet<&str> =
        document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    let paths: BTreeSet<&str> = PATHS.into_iter().chain(["/holds/{id}", "/redirect/{path}"]).collect();
    assert_eq!(described, paths);
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn each_answer_is_as_the_document_says() {
    let document = Document::get();
    let followers = TARGETS.iter().filter_map(|target| target.strip_prefix("/is-leader"));
    let followers: Vec<String> = followers.map(|query| format!("/is-follower{query}")).collect();
    let mut seen = BTreeSet::new();
    for state in states() {
        for target in TARGETS.into_iter().chain(followers.iter().map(String::as_str)) {
            let path = described(target);
            for (method, name) in METHODS {
                if document.0["paths"][path].get(name).is_none() {
                    continue;
                }
                let answer = ask(method.clone(), target, &*state);
                let wrong = document.wrong_answer(path, name, &answer);
                assert!(wrong.is_empty(), "{target}: {wrong:#?}");
                seen.extend(document.key(path, name, answer.0).map(|key| format!("{name} {path} {key}")));
            }
        }
    }
    let mut described = BTreeSet::new();
    // `http::holds` has the answers of those that change something.
    let reads = |path: &&String| !["/holds", "/alive", "/lifeline"].iter().any(|one| path.starts_with(one));
    for (path, item) in document.0["paths"].as_object().unwrap().iter().filter(|(path, _)| reads(path)) {
        for (method, operation) in item.as_object().unwrap() {
            let statuses = operation["responses"].as_object().unwrap().keys();
            described.extend(statuses.map(|status| format!("{method} {path} {status}")));
        }
    }
    // Those that are no answer of a path alone: the test below has the streams and their refusal, and
    // `http_watch` that of a stranger's `valid_for`. The others are of a long reply while the budget is
    // spent.
    let elsewhere: Vec<&String> = described.difference(&seen).collect();
    assert_eq!(
        elsewhere,
        [
            "get /members 503",
            "get /metrics 503",
            "get /openapi.json 503",
            "get /sse 200",
            "get /sse 503",
            "get /watch 403",
            "get /watch 503"
        ]
    );
}

#[test]
fn streams_errors_and_refusals_are_as_the_document_says() {
    let document = Document::get();
    for (path, form, schema) in [("/watch", Form::Leader, "Leader"), ("/sse", Form::Name, "Name")] {
        let mut head = told(response::events());
        head.2 = "retry: 1000\n\n".to_owned();
        for answer in [head, told(response::too_many_watchers())] {
            let wrong = document.wrong_answer(path, "get", &answer);
            assert!(wrong.is_empty(), "{wrong:#?}");
        }
        for state in states() {
            let latest = state.observe();
            for missed in [false, true] {
                let event = event(&latest.change, &latest, Telling { form, missed });
                let event = String::from_utf8(event).unwrap();
                let data = event.split_once("data: ").unwrap().1;
                let wrong = document.wrong(document.component("schemas", schema), &read(JSON, data), path);
                assert!(wrong.is_empty(), "{wrong:#?}");
            }
        }
    }
    let refused = [ask(Method::Post, "/leader", &source(Role::Leading)), told(not_found())];
    for (status, _, body) in refused.into_iter().chain([told(error(503, "x"))]) {
        let wrong = document.wrong(document.component("schemas", "Error"), &read(JSON, &body), "an error");
        assert!(wrong.is_empty(), "{status}: {wrong:#?}");
    }
}

#[test]
fn a_value_that_the_document_allows_is_taken() {
    let document = Document::get();
    let schema = |name: &str| document.resolve(&document.component("parameters", name)["schema"]);
    let source = source(Role::Following);
    for (name, path) in [("after", "/watch"), ("timeout", "/watch"), ("every", "/sse"), ("after", "/sse")] {
        let pattern = schema(name)["pattern"].as_str().unwrap();
        let within = pattern.strip_prefix('^').unwrap().strip_suffix('$').unwrap();
        let taken = |value: String| {
            let (status, _, body) = ask(Method::Get, &format!("{path}?{name}={value}"), &source);
            assert_eq!(status, 200, "{name}={value}: {body}");
            Ok(())
        };
        TestRunner::default().run(&string_regex(within).unwrap(), taken).unwrap();
    }
    let (least, most) = (&schema("standby")["minimum"], &schema("standby")["maximum"]);
    for status in 190..=610 {
        let allowed = least.as_u64().unwrap() <= status && status <= most.as_u64().unwrap();
        let (got, _, _) = ask(Method::Get, &format!("/is-leader?standby={status}"), &source);
        assert_eq!(u64::from(got), if allowed { status } else { 400 });
    }
    for value in list(&schema("leader")["enum"]) {
        assert_eq!(get(&format!("/readyz?leader={}", value.as_str().unwrap()), &source).0, 200);
    }
}

/// A test that finds nothing in bad answers would hold nothing.
#[test]
fn what_the_document_does_not_say_is_found() {
    let document = Document::get();
    let good = json!({"epoch": 7, "leader_id": null});
    let bad = [
        json!([]),
        json!({"epoch": 7}),
        json!({"epoch": null, "leader_id": null}),
        json!({"epoch": -1, "leader_id": null}),
        json!({"epoch": 7.5, "leader_id": null}),
        json!({"epoch": 7, "leader_id": "web-1"}),
        json!({"epoch": 7, "leader_id": null, "more": 1}),
    ];
    let wrong = |body: &Value, content_type: &str| {
        let headers = vec![("Content-Type".to_owned(), content_type.to_owned())];
        !document.wrong_answer("/epoch", "get", &(200, headers, body.to_string())).is_empty()
    };
    assert!(!wrong(&good, JSON));
    assert!(wrong(&good, "text/plain"));
    for body in bad {
        assert!(wrong(&body, JSON), "{body}");
    }
    assert!(!document.wrong_answer("/epoch", "get", &(404, Vec::new(), String::new())).is_empty());
    let without_version = (200, Vec::new(), String::new());
    assert!(document.wrong_answer("/leader", "head", &without_version)[0].contains("no header ETag"));
}
