//! What must hold for any bytes at all, one function for each reader of a stranger's bytes. They panic where
//! it does not, and else name what became of the bytes.
//!
//! The fuzz targets in `fuzz/` and their twins on stable (`main.rs`) call these same functions.
#![allow(dead_code, reason = "each fuzz target uses one of them")]

use bellwether::channel::{HANDSHAKE_BYTES_MAX, Handshake, HandshakeError, Keys, looks_sealed};
use bellwether::config::DURATION_MAX;
use bellwether::control::request as control;
use bellwether::election::{Epoch, MEMBERS_MAX, NAME_BYTES_MAX, Operation, VOTERS_MAX};
use bellwether::http::request::{BadRequest, parse, too_large};
use bellwether::http::{HEAD_BYTES_MAX, HEADERS_MAX, Request};
use bellwether::store::format::{FORMAT, Unreadable, from_bytes, to_bytes};
use bellwether::store::{RECORD_BYTES_MAX, peers};
use bellwether::wire::{
    DecodeError, FRAME_BYTES_MAX, Frame, HELLO_BYTES_MAX, Hello, REFUSE_TEXT_BYTES_MAX, Refusal as Reason,
    VERSION, VERSION_MIN, decode, encode_bye, encode_confirm, encode_confirmed, encode_hello, encode_message,
    encode_refuse,
};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};

/// The bytes of a frame before its payload: length, tag and checksum.
const HEADER_BYTES: usize = 10;
/// No error about a stranger's bytes is longer than this, in bytes: each may become a line of the log.
const ERROR_BYTES_MAX: usize = 512;

/// An error's text fits into one line, whatever the bytes that it is about.
fn check_error(text: &str) {
    assert!(text.len() <= ERROR_BYTES_MAX, "an error of {} bytes: {text:.200}", text.len());
    assert!(!text.contains(char::is_control), "an error with a control character: {text:?}");
}

// --- Frames
// -----------------------------------------------------------------------------------------------------

/// `wire::decode`: no panic. What decodes is within the limits, so that it can be encoded, to bytes which
/// decode to the same. The target decodes the bytes as they are, and once more with a right length and
/// checksum. Without these, hardly any mutation gets to the payload.
pub fn frame(bytes: &[u8]) -> &'static str {
    let raw = check_frame(bytes);
    sealed_frame(bytes).map_or(raw, |sealed| check_frame(&sealed))
}

fn check_frame(bytes: &[u8]) -> &'static str {
    let decoded = decode(bytes, FRAME_BYTES_MAX);
    match &decoded {
        Ok(None) => assert!(bytes.len() < FRAME_BYTES_MAX, "a full buffer and still no frame"),
        Ok(Some((frame, used))) => {
            let used = *used;
            assert!((HEADER_BYTES..=bytes.len()).contains(&used), "{used} of {} bytes", bytes.len());
            assert_eq!(decode(&bytes[..used], FRAME_BYTES_MAX), decoded, "what follows a frame changes it");
            assert_eq!(decode(&bytes[..used - 1], FRAME_BYTES_MAX), Ok(None), "it takes a byte too many");
            check_again(frame);
        }
        Err(error) => check_error(&error.to_string()),
    }
    outcome(&decoded)
}

/// What was decoded can be sent on and arrives as it was.
fn check_again(frame: &Frame) {
    let bytes = match frame {
        Frame::Hello(hello) => encode_hello(hello),
        Frame::Refuse { why, text } => Ok(encode_refuse(*why, text)),
        Frame::Confirm(question) => Ok(encode_confirm(question)),
        Frame::Confirmed(answer) => Ok(encode_confirmed(*answer)),
        Frame::Bye => Ok(encode_bye()),
        Frame::Message { stamp, message } => encode_message(stamp, message),
        Frame::Unknown { .. } => return,
    };
    let bytes = bytes.unwrap_or_else(|error| panic!("{frame:?} was let in beyond a limit: {error}"));
    assert_eq!(decode(&bytes, FRAME_BYTES_MAX), Ok(Some((frame.clone(), bytes.len()))));
}

fn outcome(decoded: &Result<Option<(Frame, usize)>, DecodeError>) -> &'static str {
    match decoded {
        Ok(None) => "incomplete",
        Ok(Some((Frame::Hello(_), _))) => "hello",
        Ok(Some((Frame::Refuse { .. }, _))) => "refuse",
        Ok(Some((Frame::Confirm(_), _))) => "confirm",
        Ok(Some((Frame::Confirmed(_), _))) => "confirmed",
        Ok(Some((Frame::Bye, _))) => "bye",
        Ok(Some((Frame::Message { message, .. }, _))) => message.body.name(),
        Ok(Some((Frame::Unknown { .. }, _))) => "unknown",
        Err(DecodeError::TooLong { .. }) => "too long",
        Err(DecodeError::TooShort { .. }) => "too short",
        Err(DecodeError::Checksum { .. }) => "checksum",
        Err(DecodeError::Payload { .. }) => "payload",
        Err(DecodeError::Limit { .. }) => "limit",
    }
}

/// The bytes with a right checksum, and with a right length where theirs is not possible; none: no room for a
/// header.
fn sealed_frame(bytes: &[u8]) -> Option<Vec<u8>> {
    let announced = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let total = match announced.checked_add(4) {
        Some(total) if (HEADER_BYTES..=bytes.len()).contains(&total) => total,
        _ => bytes.len(),
    };
    let mut frame = bytes.to_vec();
    let payload = bytes.get(HEADER_BYTES..total)?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[4..6]);
    hasher.update(payload);
    frame[..4].copy_from_slice(&((total - 4) as u32).to_le_bytes());
    frame[6..HEADER_BYTES].copy_from_slice(&hasher.finalize().to_le_bytes());
    Some(frame)
}

// --- The handshake
// ----------------------------------------------------------------------------------------------

/// The first bytes of a connection, as the peer port reads them. The result does not depend on the pieces
/// that they come in. It is known within the handshake's limit, and it can be answered.
pub fn handshake(bytes: &[u8]) -> &'static str {
    let raw = check_handshake(bytes);
    sealed_frame(bytes).map_or(raw, |sealed| check_handshake(&sealed))
}

fn check_handshake(bytes: &[u8]) -> &'static str {
    let read = |end: usize| decode(&bytes[..end], HELLO_BYTES_MAX);
    let whole = read(bytes.len());
    let known = (0..=bytes.len()).find(|end| read(*end) != Ok(None));
    match known {
        None => assert!(bytes.len() < HELLO_BYTES_MAX, "the stranger's bytes are kept beyond the limit"),
        Some(end) => {
            assert!(end <= HELLO_BYTES_MAX, "known after {end} bytes only");
            assert_eq!(read(end), whole, "after {end} of {} bytes", bytes.len());
        }
    }
    match &whole {
        Ok(None) => {}
        Ok(Some((frame, used))) => {
            assert_eq!(Some(*used), known);
            assert_eq!(decode(bytes, FRAME_BYTES_MAX), whole, "the limit changes what is read");
            match frame {
                Frame::Hello(hello) => check_hello(hello),
                Frame::Refuse { text, .. } => {
                    assert!(text.len() <= REFUSE_TEXT_BYTES_MAX);
                    assert!(!text.contains(char::is_control), "{text:?}");
                }
                _ => {}
            }
            check_again(frame);
        }
        Err(error) => check_error(&error.to_string()),
    }
    outcome(&whole)
}

fn check_hello(hello: &Hello) {
    let bytes = encode_hello(hello).expect("checked when it was decoded");
    assert!(bytes.len() <= HELLO_BYTES_MAX);
    let common = |version: &u16| (hello.version_min..=hello.version_max).contains(version);
    assert_eq!(hello.negotiate((VERSION_MIN, VERSION)), (VERSION_MIN..=VERSION).rev().find(common));
    // A refusal quotes what the stranger says of itself.
    let quoted = format!("{:?} of cluster {:?} is refused", hello.peer.name, hello.cluster);
    let refusal = encode_refuse(Reason::Cluster, &quoted);
    let answer = decode(&refusal, HELLO_BYTES_MAX);
    assert!(matches!(answer, Ok(Some((Frame::Refuse { why: Reason::Cluster, .. }, _)))), "{answer:?}");
}

// --- The channel
// ------------------------------------------------------------------------------------------------

/// The most bytes of an answer to a stranger. The flight of the accepting side has 400.
const REPLY_BYTES_MAX: usize = 1024;

/// The accepting side of a handshake of members with a secret that no stranger knows.
pub fn accepting() -> Handshake {
    Handshake::new(member_keys()).expect("keys of a secret are of use")
}

/// The dialling side.
pub fn dialling() -> Handshake {
    Handshake::dialling(member_keys(), IpAddr::V4(Ipv4Addr::LOCALHOST)).expect("keys of a secret are of use")
}

fn member_keys() -> Arc<Keys> {
    const SECRET: &[u8] = b"a-secret-that-the-members-share-alone";
    static KEYS: LazyLock<Arc<Keys>> = LazyLock::new(|| {
        Arc::new(Keys::of_secrets(&[SECRET.to_vec()], "web").expect("one secret is enough"))
    });
    Arc::clone(&KEYS)
}

/// `channel::Handshake`, at the accepting side and at the dialling one: no panic. A stranger proves nothing
/// and is not heard. Each side takes no more than a limit of its bytes, and answers with few. The result does
/// not depend on the pieces that they come in.
pub fn channel(bytes: &[u8]) -> &'static str {
    check_looks(bytes);
    let first = dialling().feed(&[]).map(|progress| progress.reply).unwrap_or_default();
    assert!(first.len() <= HANDSHAKE_BYTES_MAX);
    assert_eq!(looks_sealed(&first), Some(true));
    match (check_channel(bytes, accepting), check_channel(bytes, dialling)) {
        (_, "answered" | "refused after an answer") => "answered by the dialler",
        (accepted, _) => accepted,
    }
}

/// A beginning tells the same as all of it, or nothing yet. No Hello in clear looks like a handshake.
fn check_looks(bytes: &[u8]) {
    let whole = looks_sealed(bytes);
    assert!(whole.is_some() || bytes.len() < 3);
    for end in 0..bytes.len().min(3) {
        let begun = looks_sealed(&bytes[..end]);
        assert!(begun.is_none() || begun == whole, "after {end} bytes {begun:?}, in the end {whole:?}");
    }
    if whole == Some(true) {
        let clear = decode(bytes, HELLO_BYTES_MAX);
        assert!(!matches!(clear, Ok(Some(_))), "{clear:?} looks like a handshake");
    }
}

fn check_channel(bytes: &[u8], side: fn() -> Handshake) -> &'static str {
    let whole = talk(side(), bytes, || bytes.len());
    // Pieces that follow from the bytes alone.
    let mut state = crc32fast::hash(bytes) | 1;
    let pieces = talk(side(), bytes, || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        1 + state as usize % 64
    });
    if bytes.len() <= HANDSHAKE_BYTES_MAX {
        assert_eq!(pieces, whole, "pieces change the result");
    } else {
        assert!(!["waits", "answered"].contains(&pieces), "too many bytes are taken in pieces");
    }
    whole
}

/// What becomes of a stranger's bytes.
fn talk(mut side: Handshake, mut bytes: &[u8], mut piece: impl FnMut() -> usize) -> &'static str {
    assert!(!side.feed(&[]).expect("nothing is not wrong").proved);
    let (mut fed, mut reply, mut ended) = (0, Vec::new(), None);
    while !bytes.is_empty() && ended.is_none() {
        let (now, later) = bytes.split_at(piece().min(bytes.len()));
        (bytes, fed) = (later, fed + now.len());
        match side.feed(now) {
            Ok(progress) => {
                assert!(!progress.proved, "a stranger has proved itself");
                assert!(fed <= HANDSHAKE_BYTES_MAX, "{fed} bytes are taken");
                reply.extend(progress.reply);
            }
            Err((error, alert)) => {
                check_error(&error.to_string());
                reply.extend(alert);
                ended = Some(error);
            }
        }
        assert!(side.said().is_empty(), "a stranger is heard");
        assert!(reply.len() <= REPLY_BYTES_MAX, "{} bytes for {fed}", reply.len());
    }
    match (reply.as_slice(), ended) {
        (_, Some(HandshakeError::TooLong(_))) => "too long",
        (_, Some(HandshakeError::Protocol)) => panic!("known only after a proof"),
        // A record of an alert in clear: its last byte says why.
        ([0x15, 3, 3, 0, 2, 2, why], Some(HandshakeError::Refused(_))) => match why {
            10 => "unexpected message",
            40 => "handshake failure",
            47 => "illegal parameter",
            50 => "decode error",
            70 => "protocol version",
            _ => "another alert",
        },
        ([], Some(HandshakeError::Refused(_))) => "refused",
        ([], None) => "waits",
        (_, Some(HandshakeError::Refused(_))) => "refused after an answer",
        (_, Some(HandshakeError::Denied(_))) => "denied",
        (_, None) => "answered",
    }
}

// --- HTTP heads
// -------------------------------------------------------------------------------------------------

/// `http::request::parse`: a request ends with its first empty line and never has a body, by a second reading
/// of its headers that is done here. Pieces change nothing. What is refused is refused with a fitting status.
pub fn http_head(bytes: &[u8]) -> &'static str {
    // The listener keeps no more.
    let bytes = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    let whole = parse(bytes);
    match &whole {
        Ok(None) => {
            check_pieces(bytes, bytes.len(), &|piece| matches!(piece, Ok(None)));
            let refusal = too_large(bytes);
            assert!([414, 431].contains(&refusal.status), "{}", refusal.status);
            check_error(&refusal.message);
            "incomplete"
        }
        Ok(Some((request, consumed))) => {
            check_pieces(bytes, *consumed, &|piece| matches!(piece, Ok(None)));
            assert_eq!(parse(&bytes[..*consumed]), whole, "what follows a head changes it");
            check_request(request, &bytes[..*consumed]);
            "request"
        }
        Err(refusal) => {
            // How much of the head there is decides what is found first, but not whether it is wrong.
            check_pieces(bytes, bytes.len(), &|piece| matches!(piece, Ok(None) | Err(_)));
            check_error(&refusal.message);
            match refusal.status {
                400 => "malformed",
                431 => "too many headers",
                501 => "unknown method",
                505 => "unknown version",
                other => panic!("refused with {other}: {}", refusal.message),
            }
        }
    }
}

type Parsed<'a> = Result<Option<(Request<'a>, usize)>, BadRequest>;

/// What is made of the beginnings of `bytes` that are shorter than `end`; of some, where there are many.
fn check_pieces(bytes: &[u8], end: usize, allowed: &dyn Fn(&Parsed<'_>) -> bool) {
    for cut in (0..end).rev().step_by(end / 64 + 1) {
        let piece = parse(&bytes[..cut]);
        assert!(allowed(&piece), "{cut} bytes of {end}: {piece:?}");
    }
}

fn check_request(request: &Request<'_>, head: &[u8]) {
    let mut lines =
        head.split_inclusive(|byte| *byte == b'\n').skip_while(|line| line.trim_ascii().is_empty());
    let line = lines.next().unwrap_or_default();
    assert!(line.trim_ascii_end().ends_with(if request.version_1_0 { b"HTTP/1.0" } else { b"HTTP/1.1" }));
    let method = request.method.as_str();
    assert!(line.starts_with(method.as_bytes()), "{method}");
    let star = request.path == "*" && method == "OPTIONS";
    assert!(request.path.starts_with('/') || star || method == "CONNECT", "{:?}", request.path);
    for part in [Some(request.path), request.query].into_iter().flatten() {
        assert!(!part.contains(|c: char| c.is_ascii_control() || c == ' '), "{part:?}");
    }
    assert!(!request.path.contains('?'), "{:?}", request.path);

    let (mut headers, mut hosts, mut close, mut keep_alive, mut ended) = (0, 0, false, false, false);
    for line in lines {
        assert!(!ended, "the head goes on after its empty line");
        let line = line.trim_ascii();
        ended = line.is_empty();
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            assert!(ended, "a header without a colon");
            continue;
        };
        let name = line[..colon].trim_ascii().to_ascii_lowercase();
        let value = line[colon + 1..].trim_ascii().to_ascii_lowercase();
        headers += 1;
        match name.as_slice() {
            b"host" => hosts += 1,
            b"transfer-encoding" => panic!("a body was let in by Transfer-Encoding"),
            b"content-length" => {
                assert!(!value.is_empty() && value.iter().all(|byte| *byte == b'0'), "a body was let in");
            }
            b"connection" => {
                let mut options = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
                close |= options.clone().any(|option| option == b"close");
                keep_alive |= options.any(|option| option == b"keep-alive");
            }
            _ => {}
        }
    }
    assert!(ended, "the head has no end");
    assert!(headers <= HEADERS_MAX, "{headers} headers");
    assert!(hosts == 1 || (hosts == 0 && request.version_1_0), "{hosts} Host headers");
    assert_eq!(request.keep_alive, !close && (!request.version_1_0 || keep_alive));
}

// --- The control path
// ---------------------------------------------------------------------------------------------

/// `control::request`: no panic. A line is read as soon as it is there, whatever follows it, and within its
/// bytes. What is read is within its limits, and can be sent on to be read as the same.
pub fn control(bytes: &[u8]) -> &'static str {
    let parsed = control::parse(bytes);
    match &parsed {
        Ok(None) => {
            assert!(bytes.len() < control::BYTES_MAX, "a full buffer and still no request");
            "incomplete"
        }
        Ok(Some(request)) => {
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
            assert!(end < control::BYTES_MAX, "a line of {end} bytes");
            assert_eq!(control::parse(&bytes[..=end]), parsed, "what follows a line changes it");
            assert_eq!(control::parse(&bytes[..end]), Ok(None), "it does not wait for the line's end");
            assert!(!request.within.is_zero() && request.within <= DURATION_MAX);
            match &request.operation {
                Operation::Resign { stand_aside: Some(aside) } => {
                    assert!(!aside.is_zero() && *aside <= DURATION_MAX);
                }
                Operation::Transfer { to } => assert!((1..=NAME_BYTES_MAX).contains(&to.len())),
                Operation::Resign { stand_aside: None } | Operation::Cordon | Operation::Uncordon => {}
            }
            assert_eq!(control::parse(&control::encode(request)), parsed);
            request.operation.name()
        }
        Err(error) => {
            check_error(&error.to_string());
            match error {
                control::BadRequest::TooLong => "too long",
                control::BadRequest::Late(_) => panic!("a reader knows no time"),
                control::BadRequest::NotJson(_) => "not json",
                control::BadRequest::NoOperation { .. } => "no operation",
                control::BadRequest::NoName => "no name",
                control::BadRequest::LongName(_) => "long name",
                control::BadRequest::Unexpected { .. } => "unexpected",
                control::BadRequest::OutOfBounds { .. } => "out of bounds",
            }
        }
    }
}

// --- The durable record
// -----------------------------------------------------------------------------------------

/// `store::format`: no panic; what can be read can be written, to bytes which read as the same. Done with the
/// bytes as they are and with a right checksum. The same bytes as a file of known peers: no panic, and
/// nothing beyond its limits.
pub fn record(bytes: &[u8]) -> &'static str {
    check_record(bytes);
    if let Ok(known) = peers::from_bytes(bytes) {
        assert!(known.members.len() <= MEMBERS_MAX, "{} members", known.members.len());
        assert!(known.members.iter().all(|member| member.peer.check().is_ok()));
    }
    check_record(&summed_record(bytes))
}

fn check_record(bytes: &[u8]) -> &'static str {
    match from_bytes(bytes) {
        Ok(record) => {
            assert!(bytes.len() <= RECORD_BYTES_MAX, "a record of {} bytes was read", bytes.len());
            let voters = record.vote.as_ref().map_or(1, |vote| vote.config.voters.len());
            assert!((1..=VOTERS_MAX).contains(&voters), "{voters} voters");
            let again = to_bytes(&record)
                .unwrap_or_else(|error| panic!("{record:?} was let in beyond a limit: {error}"));
            assert_eq!(from_bytes(&again), Ok(record));
            "record"
        }
        Err(Unreadable::Newer(format)) => {
            assert!(format > FORMAT, "{format}");
            "newer"
        }
        Err(Unreadable::Older(format)) => {
            assert!((1..FORMAT).contains(&format), "{format}");
            "older"
        }
        Err(Unreadable::EpochTooHigh(epoch)) => {
            assert!(epoch > Epoch::RECORD_MAX, "{epoch}");
            "epoch too high"
        }
        Err(Unreadable::Corrupt(why)) => {
            check_error(&why);
            "corrupt"
        }
    }
}

/// The same with the checksum that everything after its first line has.
fn summed_record(bytes: &[u8]) -> Vec<u8> {
    const CHECKSUM: &[u8] = b" crc32=";
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (line, json) = bytes.split_at(end);
    let begin = line.windows(CHECKSUM.len()).position(|window| window == CHECKSUM);
    let begin = begin.map_or(&b"bellwether record format=2"[..], |at| &line[..at]);
    let checksum = format!("{:08x}\n", crc32fast::hash(json));
    [begin, CHECKSUM, checksum.as_bytes(), json].concat()
}
