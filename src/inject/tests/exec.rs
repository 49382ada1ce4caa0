//! `--exec`: what is put before a container's command, and taken out again.

use super::*;
use crate::inject::sidecar::{CONTAINERS, INIT_CONTAINERS, VOLUMES};

/// [`WEB`] with a command, and a mount of its own.
fn worker() -> String {
    WEB.replace(
        "        image: app:1\n",
        "        image: app:1\n        command: [work, --hard]\n        volumeMounts: \
         [{name: data, mountPath: /data}]\n",
    )
}

fn exec(names: &[&str]) -> InjectArgs {
    InjectArgs { exec: names.iter().map(|name| (*name).to_owned()).collect(), ..majority() }
}

fn words(nodes: &[Node]) -> Vec<&str> {
    nodes.iter().map(|node| node.text_at(&[]).unwrap()).collect()
}

#[test]
fn the_command_is_run_under_exec_and_comes_out_again() {
    for args in [exec(&["app"]), InjectArgs { ordinary_container: true, ..exec(&["app"]) }] {
        let text = done(&worker(), &args).text;
        let workload = &roots(&text)[0];
        let container = &workload.items(&CONTAINERS)[0];
        let command = words(container.items(&["command"]));
        assert_eq!(command, ["/opt/bellwether/bellwether", "exec", "--", "work", "--hard"]);
        let mounts = container.items(&["volumeMounts"]);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[1].text_at(&["mountPath"]), Some("/opt/bellwether"));
        assert_eq!(mounts[1].text_at(&["readOnly"]), Some("true"));
        let named = |path: &[&str]| {
            let names = workload.items(path).iter().map(|item| item.text_at(&["name"]).unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        // The program has to be there before the container starts, and the sidecar before all else.
        let inits = if args.ordinary_container {
            &["bellwether-install"][..]
        } else {
            &["bellwether", "bellwether-install"]
        };
        assert_eq!(named(&INIT_CONTAINERS), inits);
        assert!(named(&VOLUMES).contains(&"bellwether-program".to_owned()));
        assert_eq!(done(&text, &args).text, text, "the same again changes nothing");
        assert_eq!(roots(&done(&text, &uninjecting()).text)[0], roots(&worker())[0]);
        // Without the flag it is taken out, and the sidecar stays.
        assert_eq!(roots(&done(&text, &majority()).text)[0], roots(&done(&worker(), &majority()).text)[0]);
    }
}

/// The manifest is made from the chart, so this holds the init container and the command together.
#[test]
fn the_installer_is_the_charts() {
    let chart = roots(include_str!("../../../deploy/patterns/worker.yaml"));
    let chart = chart.iter().find(|root| root.text_at(&["kind"]) == Some("StatefulSet")).unwrap();
    let args = InjectArgs { image: "bellwether:0.1.0".to_owned(), ..exec(&["app"]) };
    let injected = roots(&done(&worker(), &args).text).remove(0);
    let installer = |workload: &Node| {
        let mut installer = workload.items(&INIT_CONTAINERS)[1].clone();
        installer.remove(&["imagePullPolicy"]);
        format!("{:?}", strings(&installer))
    };
    assert_eq!(installer(&injected), installer(chart));
    let command = |workload: &Node| words(&workload.items(&CONTAINERS)[0].items(&["command"])[..3]).join(" ");
    assert_eq!(command(&injected), command(chart));
}

/// All values by their paths, whatever their quotes and order.
fn strings(node: &Node) -> Vec<String> {
    let mut all = match node {
        Node::Scalar(scalar) => vec![scalar.text().to_owned()],
        Node::List(items) => items.iter().flat_map(strings).collect(),
        Node::Map(entries) => {
            let entry = |(key, value): &(Scalar, Node)| {
                strings(value).into_iter().map(|text| format!("{}.{text}", key.text())).collect::<Vec<_>>()
            };
            entries.iter().flat_map(entry).collect()
        }
    };
    all.sort();
    all
}

#[test]
fn what_cannot_be_run_so_is_refused() {
    refused(&worker(), &exec(&["app", "other"]), "no container that is called \"other\"");
    refused(WEB, &exec(&["app"]), "\"app\" has no command for --exec to run");
    for flags in [vec!["--app-health", "tcp://127.0.0.1:80"], vec!["--app-health=tcp://127.0.0.1:80"]] {
        let run_flags = flags.into_iter().map(str::to_owned).collect();
        let probed = InjectArgs { run_flags, ..exec(&["app"]) };
        refused(&worker(), &probed, "no pod could lead");
        let beside =
            worker().replace("      containers:\n", "      containers:\n      - {name: web, image: web}\n");
        done(&beside, &probed);
    }
    for (probe, words) in [
        ("livenessProbe: {httpGet: {port: 80}}", Some("\"app\" has a livenessProbe of its own")),
        ("startupProbe: {tcpSocket: {port: 80}}", Some("\"app\" has a startupProbe of its own")),
        ("livenessProbe: {exec: {command: [a]}}", None),
    ] {
        let probed = worker().replace("        command:", &format!("        {probe}\n        command:"));
        assert_ne!(probed, worker());
        match words {
            Some(words) => refused(&probed, &exec(&["app"]), words),
            None => drop(done(&probed, &exec(&["app"]))),
        }
    }
    let taken = worker().replace(
        "      containers:\n",
        "      initContainers: [{name: bellwether-install}]\n      containers:\n",
    );
    refused(&taken, &exec(&["app"]), "called bellwether-install");
    let taken = worker()
        .replace("      containers:\n", "      volumes: [{name: bellwether-program}]\n      containers:\n");
    refused(&taken, &exec(&["app"]), "a volume that is called bellwether-program");
}
