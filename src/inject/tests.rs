//! Tests of the rules one by one, and of any input at all. Whole files are in tests/inject.rs.

use super::builder::Fault;
use super::stream::{Unreadable, documents};
use super::tree::{Node, Scalar};
use super::*;
use crate::config::{Drain, Only, PeerSecret, Readiness, SafetyLevel, Workload};
use proptest::prelude::*;

mod chart;
mod exec;
mod json;
mod linear;
mod sections;

fn args() -> InjectArgs {
    InjectArgs {
        file: "-".into(),
        uninject: false,
        only: Vec::new(),
        annotated: false,
        image: "bellwether:1".to_owned(),
        safety: SafetyLevel::Classic,
        state_claim: None,
        peer_secret: None,
        network_policy: false,
        readiness: Readiness::Member,
        drain: Drain::Early,
        exec: Vec::new(),
        ordinary_container: false,
        strict: false,
        run_flags: Vec::new(),
    }
}

fn majority() -> InjectArgs {
    InjectArgs { safety: SafetyLevel::Majority, ..args() }
}

/// With all that can be put in beside the sidecar itself.
fn all() -> InjectArgs {
    InjectArgs {
        peer_secret: Some(PeerSecret { name: "web-peers".to_owned(), key: "k".to_owned() }),
        network_policy: true,
        run_flags: ["--priority", "50", "--election", "majority"].map(str::to_owned).to_vec(),
        ..args()
    }
}

/// A StatefulSet that can be injected at every level.
const WEB: &str = "\
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: web
spec:
  replicas: 3
  podManagementPolicy: Parallel
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: app
        image: app:1
        ports:
        - containerPort: 80
  volumeClaimTemplates:
  - metadata:
      name: data
";

fn done(text: &str, args: &InjectArgs) -> Injected {
    transform(text, args).unwrap_or_else(|trouble| panic!("{trouble}\n{text}"))
}

/// The roots of a text.
fn roots(text: &str) -> Vec<Node> {
    documents(text).unwrap().into_iter().map(|document| document.root).collect()
}

/// What is refused stays as it is, and the warning has these words.
#[track_caller]
fn refused(text: &str, args: &InjectArgs, words: &str) {
    let outcome = done(text, args);
    assert_eq!(outcome.text, text, "left as it is");
    assert!(outcome.refused);
    assert_eq!(outcome.remarks.len(), 1, "{:?}", outcome.remarks);
    assert!(outcome.remarks[0].contains(words), "no {words:?} in {}", outcome.remarks[0]);
}

fn uninjecting() -> InjectArgs {
    InjectArgs { uninject: true, ..args() }
}

#[test]
fn a_sidecar_and_a_service_are_put_in_and_taken_out() {
    let claim = InjectArgs { state_claim: Some("data".to_owned()), ..majority() };
    let ordinary = InjectArgs { ordinary_container: true, ..majority() };
    for args in [args(), majority(), claim, ordinary, all()] {
        let injected = done(WEB, &args).text;
        let [workload, service, policies @ ..] = &roots(&injected)[..] else { panic!("{injected}") };
        assert_eq!(policies.len(), usize::from(args.network_policy));
        let (sidecars, others) = match args.ordinary_container {
            true => (&sidecar::CONTAINERS, &sidecar::INIT_CONTAINERS),
            false => (&sidecar::INIT_CONTAINERS, &sidecar::CONTAINERS),
        };
        let ours = |node: &&Node| node.text_at(&["name"]) == Some("bellwether");
        let container = workload.items(sidecars).iter().find(ours).unwrap();
        assert!(!workload.items(others).iter().any(|node| ours(&node)));
        let policy = if args.ordinary_container { None } else { Some("Always") };
        assert_eq!(container.text_at(&["restartPolicy"]), policy);
        assert_eq!(container.text_at(&["image"]), Some("bellwether:1"));
        assert_eq!(service.text_at(&["metadata", "name"]), Some("web-bellwether"));
        assert_eq!(service.at(&["spec", "selector"]), workload.at(&["spec", "selector", "matchLabels"]));
        let mount = container.items(&["volumeMounts"]).first().and_then(|mount| mount.text_at(&["name"]));
        let volume = match (&args.state_claim, args.safety) {
            (Some(_), _) => Some("data"),
            (None, SafetyLevel::Majority) => Some("bellwether-state"),
            (None, SafetyLevel::Classic) => args.peer_secret.as_ref().map(|_| "bellwether-peer-secret"),
        };
        assert_eq!(mount, volume);
        let again = done(&injected, &args);
        assert_eq!(again.text, injected, "a second run changes nothing");
        assert_eq!(again.remarks, [""; 0]);
        assert_eq!(roots(&done(&injected, &uninjecting()).text), roots(WEB));
    }
}

#[test]
fn other_flags_put_in_another_sidecar_in_place_of_the_first() {
    let classic = done(WEB, &args()).text;
    let ordinary = InjectArgs { ordinary_container: true, ..majority() };
    assert_eq!(roots(&done(&classic, &ordinary).text), roots(&done(WEB, &ordinary).text));
    let everything = done(WEB, &all()).text;
    let [workload, policy, service] = roots(&done(&classic, &all()).text).try_into().unwrap();
    assert_eq!(roots(&everything), [workload, service, policy]);
    // What protects is not taken away by the way.
    let [workload, service, policy] = roots(&done(&everything, &args()).text).try_into().unwrap();
    assert_eq!(roots(&classic), [workload, service]);
    assert_eq!(Some(&policy), roots(&everything).last());
}

#[test]
fn flags_of_run_follow_those_of_inject() {
    let arguments = |args: &InjectArgs| {
        let [workload, ..] = &roots(&done(WEB, args).text)[..] else { panic!() };
        let arguments = workload.items(&sidecar::INIT_CONTAINERS)[0].items(&["args"]).iter();
        arguments.map(|argument| argument.text_at(&[]).unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let own = "run --service web-bellwether";
    let secret = "--peer-secret-file /peer-secret/secret --priority 50 --election majority";
    assert_eq!(arguments(&all()), format!("{own} {secret}"));
    let votes = "--safety majority --voters 3 --state-dir /state";
    let all_of_majority = InjectArgs { safety: SafetyLevel::Majority, ..all() };
    assert_eq!(arguments(&all_of_majority), format!("{own} {votes} {secret}"));
    // An election that is called majority votes no more than another one.
    let outcome = done(&done(WEB, &all()).text, &all_of_majority);
    assert!(outcome.remarks[0].contains("stop them all"), "{:?}", outcome.remarks);
}

#[test]
fn the_probe_and_the_hook_are_those_that_are_asked_for() {
    let sidecar = |args: &InjectArgs| {
        let [workload, ..] = &roots(&done(WEB, args).text)[..] else { panic!() };
        let place = if args.ordinary_container { sidecar::CONTAINERS } else { sidecar::INIT_CONTAINERS };
        workload.items(&place).iter().find(|c| c.text_at(&["name"]) == Some("bellwether")).unwrap().clone()
    };
    for (readiness, path) in [
        (Readiness::Member, Some("/readyz")),
        (Readiness::LeaderKnown, Some("/readyz?leader=known")),
        (Readiness::None, None),
    ] {
        let sidecar = sidecar(&InjectArgs { readiness, ..args() });
        assert_eq!(sidecar.text_at(&["readinessProbe", "httpGet", "path"]), path);
    }
    let hook = |args: &InjectArgs| {
        let sidecar = sidecar(args);
        let command = sidecar.items(&["lifecycle", "preStop", "exec", "command"]).iter();
        command.map(|word| word.text_at(&[]).unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let flags = |flags: &[&str]| InjectArgs {
        run_flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        ..args()
    };
    let cordon = "/bellwether cordon --timeout 5s";
    for (args, command) in [
        (args(), cordon.to_owned()),
        (flags(&["--control-socket", "@a"]), format!("{cordon} --control-socket @a")),
        (flags(&["--priority", "1", "--control-socket=/s/b"]), format!("{cordon} --control-socket /s/b")),
        (flags(&["--control-socket", "none"]), String::new()),
        (flags(&["--control-socket=none"]), String::new()),
        (InjectArgs { drain: Drain::Late, ..args() }, String::new()),
        (InjectArgs { ordinary_container: true, ..args() }, String::new()),
    ] {
        assert_eq!(hook(&args), command, "{args:?}");
    }
}

#[test]
fn the_secret_is_mounted_into_the_sidecar_alone() {
    for safety in [SafetyLevel::Classic, SafetyLevel::Majority] {
        let args = InjectArgs { safety, ordinary_container: true, ..all() };
        let [workload, ..] = &roots(&done(WEB, &args).text)[..] else { panic!() };
        let volume = "bellwether-peer-secret";
        let named = |node: &&Node| node.text_at(&["name"]) == Some(volume);
        let found = workload.items(&sidecar::VOLUMES).iter().find(named).unwrap();
        assert_eq!(found.text_at(&["secret", "secretName"]), Some("web-peers"));
        assert_eq!(found.text_at(&["secret", "defaultMode"]), None, "0644: not only for root");
        let [item] = found.items(&["secret", "items"]) else { panic!("{found:?}") };
        assert_eq!((item.text_at(&["key"]), item.text_at(&["path"])), (Some("k"), Some("secret")));
        let [app, sidecar] = workload.items(&sidecar::CONTAINERS) else { panic!("{workload:?}") };
        let mount = |container: &Node| container.items(&["volumeMounts"]).iter().find(named).cloned();
        assert_eq!(mount(app), None);
        let mount = mount(sidecar).unwrap();
        assert_eq!(mount.text_at(&["mountPath"]), Some("/peer-secret"));
        assert_eq!(mount.text_at(&["readOnly"]), Some("true"));
    }
}

#[test]
fn a_secret_for_pods_that_have_none_takes_a_step_between() {
    let said = |text: &str, args: &InjectArgs| {
        done(text, args).remarks.iter().any(|remark| remark.contains("--peer-auth permissive first"))
    };
    let step = InjectArgs { run_flags: vec!["--peer-auth=permissive".to_owned()], ..all() };
    let bare = done(WEB, &args()).text;
    assert!(said(&bare, &all()));
    assert!(!said(WEB, &all()) && !said(&bare, &step) && !said(&done(WEB, &step).text, &all()));
}

#[test]
fn what_is_refused_stays_and_is_named() {
    for (from, to, words) in [
        ("kind: StatefulSet", "kind: CronJob", "its pods end"),
        ("kind: StatefulSet", "kind: Job", "its pods end"),
        ("kind: StatefulSet", "kind: DaemonSet", "a pod on every node"),
        ("kind: StatefulSet", "kind: Pod", "only a StatefulSet or Deployment"),
        ("apps/v1", "apps/v1beta2", "apiVersion is \"apps/v1beta2\""),
        ("metadata:\n  name: web", "metadata:\n  generateName: web-", "no metadata.name"),
        ("name: web", "name: web.shop", "\"web.shop-bellwether\""),
        ("name: web", "name: 1web", "\"1web-bellwether\""),
        ("name: web", &format!("name: {}", "w".repeat(53)), "at most 52 characters"),
        ("containers:", "images:", "no containers"),
        ("      containers:", "      volumes: a\n      containers:", "spec.template.spec.volumes"),
        ("name: web", "name: web\n  annotations: a", "metadata.annotations"),
        ("matchLabels:\n      app: web", "matchLabels: {}", "no spec.selector.matchLabels"),
        (
            "matchLabels:",
            "matchExpressions: [{key: a, operator: Exists}]\n    matchLabels:",
            "matchExpressions",
        ),
        ("      containers:", "      hostNetwork: yes\n      containers:", "hostNetwork"),
        ("containerPort: 80", "containerPort: 4040", "\"app\" has port 4040"),
        ("containerPort: 80", "containerPort: 4041", "\"app\" has port 4041"),
        ("- name: app", "- name: bellwether", "called bellwether"),
        (
            "      containers:",
            "      volumes:\n      - name: bellwether-state\n      containers:",
            "volume that is called bellwether-state",
        ),
        (
            "      containers:",
            "      volumes:\n      - name: bellwether-peer-secret\n      containers:",
            "volume that is called bellwether-peer-secret",
        ),
        ("name: app", "name: !!str app", "a tag (!)"),
        ("  template:", "  <<: {a: b}\n  template:", "a merge key (<<)"),
        ("      name: data\n", "      name: data\n? ", "an empty key (?)"),
        ("      name: data\n", "      name: data\n? a\n: ", "an explicit key (?) without a value"),
        ("      name: data\n", "      name: data\n      ? a\n# b", "an explicit key (?) without a value"),
    ] {
        let text = WEB.replacen(from, to, 1);
        assert_ne!(text, WEB);
        refused(&text, &args(), words);
    }
    refused("nonsense\n", &args(), "document 1 (from line 1): left as it is: it is no object");
    assert!(!done("# Of comments alone.\n---\n", &args()).refused);
    let name = "w".repeat(52);
    assert!(!done(&WEB.replacen("name: web", &format!("name: {name}"), 1), &args()).refused, "just fits");
}

#[test]
fn what_is_empty_at_the_end_of_a_document_is_a_part_of_it() {
    for end in
        ["items:\n- ", "items:\n- \n", "items:\n- a\n-\n", "items:\n-  # nothing\n", "a:", "a:\n", "a:\n# b"]
    {
        let text = format!("{WEB}{end}");
        let injected = done(&text, &args());
        assert!(!injected.refused, "{end:?}: {:?}", injected.remarks);
        assert_eq!(roots(&done(&injected.text, &uninjecting()).text), roots(&text), "{end:?}");
    }
}

#[test]
fn majority_wants_voters_that_start_at_once() {
    for replicas in ["0", "1", "2", "4", "33", "null", "many"] {
        let text = WEB.replacen("replicas: 3", &format!("replicas: {replicas}"), 1);
        refused(&text, &majority(), "odd number of replicas");
        assert!(!done(&text, &args()).refused, "classic does not count");
    }
    refused(&WEB.replacen("  replicas: 3\n", "", 1), &majority(), "1 (it is not given)");
    refused(
        &WEB.replacen("kind: StatefulSet", "kind: Deployment", 1),
        &majority(),
        "the pods of a Deployment",
    );
    let template = "    spec:\n";
    let no_grace = format!("{template}      terminationGracePeriodSeconds: 0\n");
    assert!(WEB.contains(template));
    refused(
        &WEB.replacen(template, &no_grace, 1),
        &majority(),
        "terminationGracePeriodSeconds: 0 deletes a voter",
    );
    for policy in ["", "  podManagementPolicy: OrderedReady\n"] {
        let text = WEB.replacen("  podManagementPolicy: Parallel\n", policy, 1);
        refused(&text, &majority(), "wait until its pods are gone");
    }
    let claim = InjectArgs { state_claim: Some("logs".to_owned()), ..majority() };
    refused(WEB, &claim, "volumeClaimTemplates (data)");
}

#[test]
fn what_majority_costs_is_said() {
    let said = |text: &str, args: &InjectArgs| {
        let outcome = done(text, args);
        assert!(!outcome.refused, "a note is no refusal");
        let words = ["stop them all", "emptyDir", "fsGroup: 65532"];
        words.map(|words| outcome.remarks.iter().any(|remark| remark.contains(words)))
    };
    let claim = InjectArgs { state_claim: Some("data".to_owned()), ..majority() };
    let group =
        WEB.replacen("      containers:", "      securityContext: {fsGroup: 1}\n      containers:", 1);
    assert_eq!(said(WEB, &args()), [false, false, false]);
    assert_eq!(said(WEB, &majority()), [true, true, false]);
    assert_eq!(said(WEB, &claim), [true, false, true]);
    assert_eq!(said(&group, &claim), [true, false, false]);
    // Another image for present voters is an ordinary rolling update; to add voters is none.
    let image = InjectArgs { image: "bellwether:2".to_owned(), ..majority() };
    assert_eq!(said(&done(WEB, &majority()).text, &image), [false, true, false]);
    assert_eq!(said(&done(WEB, &args()).text, &majority()), [true, true, false]);
}

#[test]
fn only_what_is_selected_changes() {
    let two = format!("{WEB}---\n{}", WEB.replace("name: web", "name: api"));
    let api = Only { kind: Workload::StatefulSet, name: "api".to_owned() };
    let only = InjectArgs { only: vec![api.clone()], ..args() };
    let text = done(&two, &only).text;
    assert!(text.starts_with(WEB) && text.contains("api-bellwether"));
    let missing = InjectArgs { only: vec![Only { name: "db".to_owned(), ..api }], ..args() };
    let outcome = done(&two, &missing);
    assert!(outcome.refused && outcome.remarks[0].contains("StatefulSet/db"), "{:?}", outcome.remarks);

    let annotated = InjectArgs { annotated: true, ..args() };
    let outcome = done(&two.replace("StatefulSet", "CronJob"), &annotated);
    assert!(!outcome.refused, "the arguments do not ask for it");
    for (from, to) in [
        ("metadata:\n  name: web", "metadata:\n  annotations: {bellwether/inject: \"enabled\"}\n  name: web"),
        ("    metadata:\n", "    metadata:\n      annotations: {bellwether/inject: enabled}\n"),
    ] {
        let marked = format!("{}---\n{}", WEB.replacen(from, to, 1), WEB.replace("name: web", "name: api"));
        let text = done(&marked, &annotated).text;
        assert!(text.contains("web-bellwether") && !text.contains("api-bellwether"), "{text}");
    }
    assert_eq!(done(&two, &annotated).text, two);
}

#[test]
fn a_service_of_another_owner_is_not_taken() {
    let service = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web-bellwether\n";
    refused(&format!("{service}---\n{WEB}"), &args(), "another one of that name");
    let elsewhere = format!("{service}  namespace: b\n---\n{WEB}");
    assert!(!done(&elsewhere, &args()).refused);
    let both = format!("{WEB}---\n{}", WEB.replacen("kind: StatefulSet", "kind: Deployment", 1));
    let outcome = done(&both, &args());
    assert!(outcome.refused && outcome.remarks[0].contains("Deployment/web"), "{:?}", outcome.remarks);
    // One that was made before, and has become another meanwhile.
    let injected = done(WEB, &all()).text;
    for (from, to) in [("clusterIP: None", "clusterIP: 10.0.0.1"), ("endPort: 4040", "endPort: 4041")] {
        let stale = injected.replacen(from, to, 1);
        assert_ne!(stale, injected);
        assert_eq!(roots(&done(&stale, &all()).text), roots(&injected));
    }
}

#[test]
fn a_policy_of_another_owner_is_not_taken_and_nothing_is_done_by_half() {
    let policy = "kind: NetworkPolicy\nmetadata:\n  name: web-bellwether\n";
    let stale = done(WEB, &args()).text.replacen("clusterIP: None", "clusterIP: 10.0.0.1", 1);
    refused(&format!("{stale}---\n{policy}"), &all(), "needs a NetworkPolicy web-bellwether");
    assert!(!done(&format!("{policy}---\n{WEB}"), &args()).refused, "it is not asked for");
}

#[test]
fn what_cannot_be_written_anew_keeps_the_companion_in_it() {
    let [workload, service] = roots(&done(WEB, &args()).text).try_into().unwrap();
    let list = Node::map([("kind", Node::string("List")), ("items", Node::List(vec![service]))]);
    let text = format!("{}---\n!a\n{}", emit::yaml(&workload), emit::yaml(&list));
    refused(&text, &uninjecting(), "a tag (!)");
}

#[test]
fn a_text_becomes_what_its_documents_become() {
    let workload = |n: usize| format!("---\n# {n}\n{}", WEB.replace("web", &format!("web-{n}")));
    let other = |n: usize| format!("--- # {n}\n&a a: *a\n...\n");
    let documents: Vec<String> = (0..8).flat_map(|n| [other(n), workload(n), "---\n".to_owned()]).collect();
    let injected = done(&documents.concat(), &args());
    assert_eq!(injected.remarks, [""; 0]);
    let apart: Vec<String> = documents.iter().map(|document| done(document, &args()).text).collect();
    assert_eq!(injected.text, apart.concat());
    assert_eq!(roots(&done(&injected.text, &uninjecting()).text), roots(&documents.concat()));
}

#[test]
fn what_is_written_anew_has_the_line_ends_of_the_first_line() {
    let block = WEB.replacen(
        "image: app:1",
        "image: app:1\n        args:\n        - |\n          a\n\n          b",
        1,
    );
    for text in [WEB, &block] {
        let wanted = done(text, &args()).text;
        for line_break in ["\r\n", "\r"] {
            let input = text.replace('\n', line_break);
            assert_eq!(roots(&input), roots(text));
            assert_eq!(done(&input, &args()).text, wanted.replace('\n', line_break));
            let last = input.trim_end();
            assert_eq!(done(last, &args()).text, wanted.replace('\n', line_break), "no end of the last line");
        }
        let mixed = format!("# c\n---\n{}", text.replace('\n', "\r\n"));
        assert_eq!(done(&mixed, &args()).text, format!("# c\n---\n{wanted}"));
    }
}

#[test]
fn what_a_server_adds_goes() {
    let live = WEB.replacen(
        "  name: web\n",
        "  name: web\n  uid: a\n  resourceVersion: \"7\"\n  managedFields: []\n",
        1,
    ) + "status:\n  replicas: 3\n";
    assert_eq!(roots(&done(&live, &args()).text), roots(&done(WEB, &args()).text));
}

#[test]
fn words_keep_their_meaning() {
    let words = [
        "\"yes\"",
        "yes",
        "'no'",
        "\"on\"",
        "off",
        "\"1.0\"",
        "1.0",
        "'0123'",
        "0123",
        "\"1e3\"",
        "\"1:30\"",
        "\"~\"",
        "\"\"",
        "null",
        "\"null\"",
        "\" a\"",
        "\"a: b\"",
        "\"# a\"",
        "\"2026-01-01\"",
        "\"0x1f\"",
        "\"y\"",
        "\"=\"",
        "\"<<\"",
        "\"a\\nb\"",
        "\"a\\n\\n\"",
        "\"\\u0085\\u2028\\x7f\"",
        "\"\u{e9}\u{1f600}\"",
        "\"- a\"",
        "\"*a\"",
    ];
    for word in words {
        let text = WEB.replacen("image: app:1", &format!("image: {word}"), 1);
        let [workload, _] = roots(&done(&text, &args()).text).try_into().unwrap();
        let [original] = roots(&text).try_into().unwrap();
        let image = |node: &Node| node.items(&sidecar::CONTAINERS)[0].at(&["image"]).cloned();
        assert_eq!(image(&workload), image(&original), "{word}");
        // The very same characters, except in strings that every YAML reader takes for strings and in what
        // has to be escaped.
        let line = format!("        image: {}\n", word.replace('\'', "\""));
        let printable = word.is_ascii() && !word.contains('\\');
        assert!(
            !printable || done(&text, &args()).text.contains(&line),
            "{line}{}",
            done(&text, &args()).text
        );
    }
}

#[test]
fn broken_input_is_named_with_its_place() {
    let place = |text: &str| match transform(text, &args()) {
        Err(Trouble::Unreadable(error)) => error,
        other => panic!("{other:?}"),
    };
    let syntax = place("a: [b\nc: d");
    assert!(matches!(syntax, Unreadable { line: 2, why: Fault::Syntax(_), .. }), "{syntax:?}");
    let is = |text: &str, line: usize, column: usize, why: Fault| {
        let found = place(text);
        assert_eq!((found.line, found.column, &found.why), (line, column, &why), "{text}");
        found.to_string()
    };
    is("a: b\nb: 1\na: c", 3, 1, Fault::Twice("a".to_owned()));
    is("---\n---\na: b\nb: 1\na: c", 5, 1, Fault::Twice("a".to_owned()));
    assert!(is("a:\n  {{ .Values.a }}", 2, 16, Fault::Key).contains("helm template"));
    assert!(place("a: {{ .Values.a }}").to_string().contains("helm template"));
    is(&"- ".repeat(100), 1, 129, Fault::Deep);
    assert!(place(&"[".repeat(100_000)).to_string().contains("line 1, column"), "the parser's own bound");
    is("&a [*a]", 1, 5, Fault::Circle);
    let mut laughs = "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n".to_owned();
    for level in 1..30 {
        let inner = format!("*a{}, ", level - 1).repeat(9);
        laughs.push_str(&format!("a{level}: &a{level} [{}]\n", inner.trim_end_matches(", ")));
    }
    assert_eq!(place(&laughs).why, Fault::Heavy);
    let deep: String = (1..30).map(|n| format!("b{n}: &b{n} [[[[*b{}]]]]\n", n - 1)).collect();
    assert_eq!(place(&format!("b0: &b0 []\n{deep}")).why, Fault::Deep);
}

/// Texts that are often nearly YAML.
fn yamlish() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "b: ",
        "- ",
        "\n",
        "\n  ",
        "\n- ",
        "---\n",
        "...\n",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "&a ",
        "*a",
        "!t ",
        "| \n ",
        ">-\n ",
        "'",
        "\"",
        "# c",
        "? ",
        ": ",
        "<<: ",
        "%YAML 1.2\n",
        "\t",
        "\r\n",
        "\u{feff}",
        "kind: List\n",
        "items:\n- ",
        WEB,
        "---\n# c\n",
        "é",
    ]);
    let documents = prop::sample::select(vec![
        WEB,
        "---\n",
        "# c\n",
        "--- # c\n",
        "a: b # c\n",
        "...\n",
        "\n",
        "--- {a: b}\n",
    ]);
    prop_oneof![
        prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat()),
        prop::collection::vec(documents, 0..8).prop_map(|documents| documents.concat()),
    ]
}

fn node() -> impl Strategy<Value = Node> {
    let text = prop_oneof!["\\PC{0,8}", "[a-z \n:#'\"-]{0,12}", any::<String>()];
    let scalar = prop_oneof![
        text.prop_map(|text| Node::string(text.replace('\0', ""))),
        prop::sample::select(vec!["1", "true", "null", "-1.5e3"]).prop_map(Node::literal),
    ];
    scalar.prop_recursive(4, 40, 5, |inner| {
        let entries = prop::collection::btree_map("[a-zA-Z0-9 :#]{0,6}", inner.clone(), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Node::List),
            entries.prop_map(|entries| {
                Node::Map(entries.into_iter().map(|(key, value)| (Scalar::Text(key.into()), value)).collect())
            }),
        ]
    })
}

/// Whether all of a tree is in a larger one, in the same order.
fn holds(larger: &Node, smaller: &Node) -> bool {
    match (larger, smaller) {
        (Node::List(larger), Node::List(smaller)) => {
            let mut larger = larger.iter();
            smaller.iter().all(|item| larger.any(|found| holds(found, item)))
        }
        (Node::Map(_), Node::Map(smaller)) => {
            smaller.iter().all(|(key, value)| larger.get(key.text()).is_some_and(|found| holds(found, value)))
        }
        _ => larger == smaller,
    }
}

proptest! {
    #[test]
    fn any_text_is_taken_or_refused(text in "\\PC*") {
        if let Ok(outcome) = transform(&text, &args()) {
            prop_assert_eq!(outcome.text, text);
        }
    }

    #[test]
    fn what_is_nearly_yaml_is_taken_or_refused(text in yamlish()) {
        for args in [args(), majority(), uninjecting()] {
            match transform(&text, &args) {
                Ok(outcome) => {
                    let again = transform(&outcome.text, &args);
                    let again = again.map(|again| again.text).map_err(|error| error.to_string());
                    prop_assert_eq!(again, Ok(outcome.text));
                }
                Err(Trouble::Unreadable(_)) => {}
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }

    #[test]
    fn what_was_there_stays(
        others in prop::collection::vec(node(), 0..4),
        more in node(),
        (json, crlf, as_list) in any::<(bool, bool, bool)>(),
        (secret, policy, ordinary, votes) in any::<(bool, bool, bool, bool)>(),
    ) {
        let base = if votes { majority() } else { args() };
        let args = InjectArgs {
            peer_secret: all().peer_secret.filter(|_| secret),
            network_policy: policy,
            ordinary_container: ordinary,
            ..base
        };
        let mut web = roots(WEB).remove(0);
        web.change(&["spec", "template", "spec", "more"], |place| *place = more);
        let other = |node| Node::map([("kind", Node::string("Other")), ("data", node)]);
        let mut objects: Vec<Node> = others.into_iter().map(other).collect();
        objects.insert(objects.len() / 2, web);
        if as_list {
            objects = vec![Node::map([("kind", Node::string("List")), ("items", Node::List(objects))])];
        }
        let write = if json { emit::json } else { emit::yaml };
        let text = objects.iter().map(|node| format!("---\n{}", write(node))).collect::<String>();
        let text = if crlf { text.replace('\n', "\r\n") } else { text };
        let injected = done(&text, &args);
        prop_assert!(!injected.refused, "{:?}", injected.remarks);
        prop_assert!(!crlf || injected.text.matches('\n').count() == injected.text.matches("\r\n").count());
        let found = Node::List(roots(&injected.text));
        prop_assert!(holds(&found, &Node::List(objects.clone())), "{}", injected.text);
        prop_assert_eq!(&done(&injected.text, &args).text, &injected.text);
        prop_assert_eq!(roots(&done(&injected.text, &uninjecting()).text), objects);
    }

    #[test]
    fn what_is_written_is_read_again(node in node()) {
        for text in [emit::yaml(&node), emit::json(&node)] {
            let read = documents(&text);
            let read = read.map(|documents| documents.into_iter().map(|d| d.root).collect::<Vec<_>>());
            prop_assert_eq!(read, Ok(vec![node.clone()]), "{}", text);
        }
    }
}
