//! What members announce: shown beside their addresses, and where `/redirect` sends clients.

use super::*;
use crate::election::AnnouncedValues;

/// web-2 leads and announces this, and so it does where it leads no more. web-1 announces another value.
fn announces(role: Role, pairs: &[(&str, &str)]) -> Fixed {
    let mut source = source(role);
    let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let own = AnnouncedValues([("zone".to_owned(), "b".to_owned())].into());
    let announced = [(peer(2, "web-2").id, AnnouncedValues(pairs.collect())), (peer(1, "web-1").id, own)];
    source.0.announced = Arc::new(announced.into());
    source
}

const URL: (&str, &str) = ("url", "http://198.18.0.2:8080/app/");

pub(super) fn announcing() -> [Fixed; 3] {
    [
        announces(Role::Following, &[URL, ("zone", "a")]),
        announces(Role::Asking, &[URL]),
        announces(Role::Following, &[("url", "http://u@198.18.0.2")]),
    ]
}

#[test]
fn the_leader_and_the_members_have_what_they_announce() {
    let source = announces(Role::Following, &[URL, ("zone", "a")]);
    let expected = json!({"url": URL.1, "zone": "a"});
    assert_eq!(get("/leader", &source).1["leader"]["announce"], expected);
    let members = get("/members", &source).1;
    let announced: Vec<&Value> =
        members["members"].as_array().unwrap().iter().map(|member| &member["announce"]).collect();
    assert_eq!(announced, [&expected, &json!({"zone": "b"})]);
    assert_eq!(
        get("/leader", &announces(Role::Leading, &[URL])).1["leader"]["announce"],
        json!({"zone": "b"})
    );
}

#[test]
fn what_the_leader_announces_is_part_of_the_state() {
    let mut source = announces(Role::Following, &[URL]);
    let version = |source: &Fixed| get("/leader", source).1["version"].clone();
    let first = version(&source);
    assert_eq!(version(&source), first);
    source.0.announced = announces(Role::Following, &[("url", "http://198.18.0.2:9090")]).0.announced;
    assert_ne!(version(&source), first);
}

#[test]
fn clients_are_sent_to_the_leader_s_application() {
    let sent = |method, target: &str, source: &Fixed| {
        let (status, headers, body) = ask(method, target, source);
        let location = headers.into_iter().find(|(name, _)| name == "Location").map(|(_, value)| value);
        (status, location, body)
    };
    let follower = announces(Role::Following, &[URL]);
    for (target, location) in [
        ("/redirect", "/app/"),
        ("/redirect/", "/app/"),
        ("/redirect?a=b", "/app/?a=b"),
        ("/redirect/a/b?c=/d?e", "/app/a/b?c=/d?e"),
        ("/redirect//evil.example/a", "/app//evil.example/a"),
        ("/redirect/\\evil.example", "/app/\\evil.example"),
        ("/redirect/@evil.example", "/app/@evil.example"),
        ("/redirect/a...b/%2F%2Fevil", "/app/a...b/%2F%2Fevil"),
    ] {
        for method in [Method::Get, Method::Head, Method::Post, Method::Put, Method::Delete, Method::Options]
        {
            let expected = format!("http://198.18.0.2:8080{location}");
            assert_eq!(sent(method, target, &follower), (307, Some(expected), String::new()), "{target}");
        }
    }
    for target in [
        "/redirect/..",
        "/redirect/a/../b",
        "/redirect/%2e%2E/b",
        "/redirect/a%2f..",
        "/redirect/a%5C..%5cb",
        "/redirect/%",
        "/redirect/%ff",
        "/redirect/\u{e4}",
        "/redirect/a?\u{e4}",
    ] {
        assert_eq!(sent(Method::Get, target, &follower).0, 400, "{target}");
    }
    let [_, asking, untrue] = announcing();
    for (source, status, words) in [
        (asking, 503, "no leader"),
        (untrue, 404, "\"web-2\" announces no URL"),
        (source(Role::Following), 404, "--announce url="),
    ] {
        let (got, location, body) = sent(Method::Get, "/redirect/a", &source);
        assert_eq!((got, location), (status, None), "{body}");
        assert!(body.contains(&words.replace('"', "\\\"")), "{body}");
    }
    let own = announces(Role::Leading, &[]);
    let url = AnnouncedValues([("url".to_owned(), "https://own".to_owned())].into());
    let own = Fixed(Snapshot { announced: Arc::new([(peer(1, "web-1").id, url)].into()), ..own.0 }, own.1);
    assert_eq!(sent(Method::Get, "/redirect/a", &own).1.as_deref(), Some("https://own/a"));
    assert_eq!(sent(Method::Get, "/redirect?@a", &own).1.as_deref(), Some("https://own/?@a"));
    assert_eq!(get("/redirected", &own).0, 404);
}
