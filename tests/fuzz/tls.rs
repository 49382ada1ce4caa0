//! Flights of TLS 1.3 (RFC 8446), as far as they can be the same each time: hellos.

/// The parts of a hello that differ among the seeds.
pub struct HelloParts<'a> {
    /// The protocols of the application layer; none: no such extension.
    pub protocol: Option<&'a [u8]>,
    /// The public key for the exchange; none: a hello without one.
    pub share: Option<[u8; 32]>,
    /// The version that the extension names.
    pub version: u16,
    /// The kind of proof: 2 is a raw public key.
    pub proof: Option<u8>,
    /// An extension that no side knows, of so many bytes.
    pub padding: usize,
}

/// As a member sends them.
pub const MEMBER: HelloParts<'static> = HelloParts {
    protocol: Some(b"bellwether/1"),
    share: Some(BASE_POINT),
    version: 0x0304,
    proof: Some(2),
    padding: 0,
};

/// A public key that a client has: it belongs to the private key 1.
pub const BASE_POINT: [u8; 32] = {
    let mut point = [0; 32];
    point[0] = 9;
    point
};

const X25519: [u8; 2] = [0, 0x1d];
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// The random of a server's hello that asks for another hello.
const RETRY: &str = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c";

/// A record of this type.
pub fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3], &(content.len() as u16).to_be_bytes()[..], content].concat()
}

/// A message of a handshake.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32).to_be_bytes()[1..], body].concat()
}

/// Bytes behind their length in two bytes.
fn counted(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u16).to_be_bytes()[..], content].concat()
}

fn extension(number: u16, content: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &counted(content)].concat()
}

fn share(key: [u8; 32]) -> Vec<u8> {
    [&X25519[..], &counted(&key)].concat()
}

/// The first message of a dialler.
pub fn client_hello(parts: &HelloParts<'_>) -> Vec<u8> {
    let mut extensions = vec![
        extension(43, &[&[2][..], &parts.version.to_be_bytes()].concat()),
        extension(10, &counted(&X25519)),
        // Ed25519.
        extension(13, &counted(&[8, 7])),
        extension(51, &counted(&parts.share.map(share).unwrap_or_default())),
        extension(45, &[1, 1]),
    ];
    let protocol = |name: &[u8]| [&[name.len() as u8], name].concat();
    extensions.extend(parts.protocol.map(|name| extension(16, &counted(&protocol(name)))));
    extensions.extend(parts.proof.into_iter().flat_map(|kind| [19, 20].map(|n| extension(n, &[1, kind]))));
    if parts.padding > 0 {
        extensions.push(extension(21, &vec![0; parts.padding]));
    }
    let suites = counted(&[0x13, 2, 0x13, 1, 0x13, 3]);
    let body = [&[3, 3], &[7; 32][..], &session(), &suites, &[1, 0], &counted(&extensions.concat())];
    message(CLIENT_HELLO, &body.concat())
}

/// The first message of the side that was dialled.
pub fn server_hello(parts: &HelloParts<'_>) -> Vec<u8> {
    let share = parts.share.map(share).unwrap_or_default();
    let extensions = [extension(43, &parts.version.to_be_bytes()), extension(51, &share)].concat();
    answer(&[9; 32], &extensions)
}

/// It wants a hello with a share of another group.
pub fn retry() -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let random: Vec<u8> = RETRY.as_bytes().chunks(2).map(byte).collect();
    answer(&random, &[extension(43, &[3, 4]), extension(51, &[0, 0x17])].concat())
}

fn answer(random: &[u8], extensions: &[u8]) -> Vec<u8> {
    let body = [&[3, 3], random, &session(), &[0x13, 2, 0], &counted(extensions)];
    message(SERVER_HELLO, &body.concat())
}

/// The session of a hello, which says nothing in TLS 1.3.
fn session() -> Vec<u8> {
    [&[32][..], &[8; 32]].concat()
}
