//! Prints what the sidecar's discovery finds, one line a look-up, until its standard input ends:
//!
//! ```sh
//! cargo run --example resolve -- 5s app.ns.svc.cluster.local. 198.18.0.1:4041
//! ```
//!
//! The refresh, the Service's name (`-` for none) and peers as `HOST:PORT`. Peers of the Service are given
//! port 4041. `tests/dns.rs` runs it against a real name server.

use bellwether::discovery::{DiscoverySettings, Lookup, LookupResult, spawn};
use std::error::Error;
use std::io::{Read, stdin};

const USAGE: &str = "usage: resolve REFRESH SERVICE|- [HOST:PORT ...]";

fn main() -> Result<(), Box<dyn Error>> {
    env_logger::init();
    let mut args = std::env::args().skip(1);
    let refresh = humantime::parse_duration(&args.next().ok_or(USAGE)?)?;
    let service = Some(args.next().ok_or(USAGE)?).filter(|name| name != "-");
    let mut peers = Vec::new();
    for peer in args {
        let (host, port) = peer.rsplit_once(':').ok_or(USAGE)?;
        peers.push((host.to_owned(), port.parse()?));
    }
    let settings = DiscoverySettings { service, peers, peer_port: 4041, refresh, refresh_hurried: refresh };
    let discovery = spawn(settings, |lookup| println!("{}", line(&lookup)))?;
    stdin().read_to_end(&mut Vec::new())?;
    discovery.stop();
    Ok(())
}

fn line(lookup: &Lookup) -> String {
    let what = match &lookup.result {
        LookupResult::Found(addresses) => addresses.iter().map(|address| format!(" {address}")).collect(),
        LookupResult::Empty => String::new(),
        LookupResult::Unknown { reason } => format!(" {reason}"),
    };
    let extent = if lookup.complete { "complete" } else { "partial" };
    format!("{} {extent}{what}", lookup.result.name())
}
