//! The wire as a stranger knows it, written from the documentation in `src/wire/mod.rs` and
//! `src/election/message.rs`. `golden` holds it against `tests/wire.golden`. Nothing here calls the program's
//! own encoder, so a mistake there cannot hide here.

use std::net::{Ipv4Addr, SocketAddr};

/// Length, tag and checksum: what stands before the payload.
const HEADER_BYTES: usize = 10;
const HELLO: u16 = 1;
const REFUSE: u16 = 2;
const BYE: u16 = 3;
const CONFIRM: u16 = 4;
const CONFIRMED: u16 = 5;

/// A version of a list or of a configuration: the epoch of its writer, and the writer's count.
pub type Version = (u64, u32);

/// What a process says of itself, and what others pass on of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    pub id: u128,
    pub incarnation: u64,
    pub name: String,
    pub address: SocketAddr,
    pub priority: u16,
    pub revision: String,
}

/// A configuration of voters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    pub version: Version,
    pub voters: Vec<String>,
    pub lease_ms: u32,
    pub bound_ms: u32,
}

/// What a candidate asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ballot {
    /// A vote; otherwise a pre-vote.
    pub vote: bool,
    pub epoch: u64,
    pub incarnation: u64,
    /// Seconds and nanoseconds on the candidate's clock.
    pub asked_at: (u64, u32),
    pub lease_ms: u32,
}

/// What a voter answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Granted,
    /// For so many milliseconds it is bound by a promise to another.
    Promised(u32),
    NoRecord,
}

/// What a process knows from its record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Known {
    Nothing,
    Founded(Config),
}

/// A member, and whether it is alive.
pub type Entry = (Peer, bool);

/// A fingerprint of `--voters`, and `--lease` in milliseconds.
pub type Flags = (u64, u32);

/// Asks a process whether a Hello that names it is its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confirm {
    pub id: u128,
    pub incarnation: u64,
    /// The Hello's.
    pub token: u64,
    /// Where the Hello arrived: the asking side's end of the connection, and what that side advertises.
    pub reached: (SocketAddr, SocketAddr),
}

/// The answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confirmed {
    Own,
    Foreign,
    Another,
}

/// The worst delay that a leader remembers, in milliseconds, and for how many eighths of its memory.
pub type Learnt = (u32, u8);

/// All messages, and what a stranger may put into them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    Election,
    Answer,
    Coordinator { elected_at_ms: u64 },
    Heartbeat { sequence: u32, lease_ms: u32, learnt: Learnt },
    HeartbeatAck { sequence: u32, membership: Version },
    Membership { version: Version, entries: Vec<Entry> },
    Join { version: Version, entry: Entry },
    Leave { version: Option<Version>, id: u128 },
    Resign { successor: Option<u128>, leaving: bool },
    LeaderQuery,
    LeaderInfo { leader: Option<(Peer, u64)>, entries: Vec<Entry> },
    VoteRequest { ballot: Ballot, contender: bool, transfer: Option<u64>, config: Config },
    Vote { ballot: Ballot, outcome: Outcome, config: Option<Config> },
    Renew { sequence: u32, lease_ms: u32, config: Version, learnt: Learnt },
    Renewed { sequence: u32, membership: Version, promised: bool, firm: bool, config: Version, flags: Flags },
    Configuration(Config),
    Recover { round: u32, incarnation: u64 },
    Recovered { round: u32, incarnation: u64, state: Known, flags: Flags },
    ProposeTransfer,
    TransferReady { majority: bool },
}

/// What arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    Hello(Peer),
    Refuse {
        why: u64,
        text: String,
    },
    Bye,
    Confirm(Confirm),
    Confirmed(Confirmed),
    Message {
        epoch: u64,
        /// None: a message that a stranger has no use for.
        message: Option<Message>,
    },
    /// A kind of frame that these tests do not know.
    Other(u16),
}

/// Fields in postcard's notation, one after the other.
#[derive(Clone, Default)]
pub struct Fields(Vec<u8>);

impl Fields {
    /// A whole number of any width: seven bits a byte, the lowest first.
    pub fn number(mut self, number: impl Into<u64>) -> Fields {
        let mut rest = number.into();
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
        self
    }

    fn byte(mut self, byte: u8) -> Fields {
        self.0.push(byte);
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Fields {
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, text: &str) -> Fields {
        self.number(text.len() as u64).raw(text.as_bytes())
    }

    fn id(self, id: u128) -> Fields {
        self.number(16u64).raw(&id.to_be_bytes())
    }

    fn version(self, (epoch, version): Version) -> Fields {
        self.number(epoch).number(version)
    }

    fn option<T>(self, value: Option<T>, put: impl FnOnce(Fields, T) -> Fields) -> Fields {
        match value {
            None => self.byte(0),
            Some(value) => put(self.byte(1), value),
        }
    }

    fn list<T>(self, items: &[T], put: impl Fn(Fields, &T) -> Fields) -> Fields {
        items.iter().fold(self.number(items.len() as u64), put)
    }

    fn address(self, address: SocketAddr) -> Fields {
        let host = match address {
            SocketAddr::V4(v4) => self.byte(0).raw(&v4.ip().octets()),
            SocketAddr::V6(v6) => self.byte(1).raw(&v6.ip().octets()),
        };
        host.number(address.port())
    }

    fn peer(self, peer: &Peer) -> Fields {
        let named = self.id(peer.id).number(peer.incarnation).text(&peer.name);
        named.address(peer.address).number(peer.priority).text(&peer.revision)
    }

    fn entry(self, (peer, alive): &Entry) -> Fields {
        self.peer(peer).byte(u8::from(!alive))
    }

    fn config(self, config: &Config) -> Fields {
        let voters = self.version(config.version).list(&config.voters, |fields, name| fields.text(name));
        voters.number(config.lease_ms).number(config.bound_ms)
    }

    fn ballot(self, ballot: &Ballot) -> Fields {
        let asked = self.byte(u8::from(ballot.vote)).number(ballot.epoch).number(ballot.incarnation);
        asked.number(ballot.asked_at.0).number(ballot.asked_at.1).number(ballot.lease_ms)
    }

    fn flags(self, (voters, lease_ms): Flags) -> Fields {
        self.number(voters).number(lease_ms)
    }

    fn outcome(self, outcome: &Outcome) -> Fields {
        match outcome {
            Outcome::Granted => self.byte(0),
            Outcome::Promised(for_ms) => self.byte(1).byte(2).number(*for_ms),
            Outcome::NoRecord => self.byte(1).byte(5),
        }
    }
}

/// A frame: its length, its kind, its checksum, and its payload.
pub fn frame(tag: u16, payload: &Fields) -> Vec<u8> {
    let mut checked = tag.to_le_bytes().to_vec();
    checked.extend(&payload.0);
    let mut frame = (checked.len() as u32 + 4).to_le_bytes().to_vec();
    frame.extend(tag.to_le_bytes());
    frame.extend(crc32fast::hash(&checked).to_le_bytes());
    frame.extend(&payload.0);
    frame
}

/// The first frame on a connection, of a process that announces nothing.
pub fn hello(versions: (u16, u16), cluster: &str, peer: &Peer, safety: u8, token: u64) -> Vec<u8> {
    let fields = Fields::default().number(versions.0).number(versions.1).text(cluster).peer(peer);
    frame(HELLO, &fields.byte(safety).number(token).byte(0))
}

pub fn confirm(question: &Confirm) -> Vec<u8> {
    let fields = Fields::default().id(question.id).number(question.incarnation).number(question.token);
    frame(CONFIRM, &fields.address(question.reached.0).address(question.reached.1))
}

pub fn confirmed(answer: Confirmed) -> Vec<u8> {
    frame(CONFIRMED, &Fields::default().byte(answer as u8))
}

pub fn refuse(why: u16, text: &str) -> Vec<u8> {
    frame(REFUSE, &Fields::default().number(why).text(text))
}

pub fn bye() -> Vec<u8> {
    frame(BYE, &Fields::default())
}

impl Message {
    /// The message's frame, stamped with its sender's cluster, id and priority, and the sender's epoch.
    pub fn frame(&self, cluster: &str, sender: &Peer, epoch: u64) -> Vec<u8> {
        let stamp = Fields::default().text(cluster).id(sender.id).number(sender.priority);
        let (tag, fields) = self.fields(stamp.number(epoch));
        frame(tag, &fields)
    }

    fn fields(&self, f: Fields) -> (u16, Fields) {
        match self {
            Message::Election => (16, f),
            Message::Answer => (17, f),
            Message::Coordinator { elected_at_ms } => (18, f.number(*elected_at_ms)),
            Message::Heartbeat { sequence, lease_ms, learnt } => {
                (19, f.number(*sequence).number(*lease_ms).number(learnt.0).byte(learnt.1))
            }
            Message::HeartbeatAck { sequence, membership } => (20, f.number(*sequence).version(*membership)),
            Message::Membership { version, entries } => {
                (21, f.version(*version).list(entries, Fields::entry))
            }
            Message::Join { version, entry } => (22, f.version(*version).entry(entry)),
            Message::Leave { version, id } => (23, f.option(*version, Fields::version).id(*id)),
            Message::Resign { successor, leaving } => {
                (24, f.option(*successor, Fields::id).byte(u8::from(*leaving)))
            }
            // For the whole list.
            Message::LeaderQuery => (25, f.byte(0)),
            Message::LeaderInfo { leader, entries } => {
                let f = f.option(leader.as_ref(), |f, (peer, since)| f.peer(peer).number(*since));
                (26, f.list(entries, Fields::entry))
            }
            Message::VoteRequest { ballot, contender, transfer, config } => {
                let f = f.ballot(ballot).byte(u8::from(*contender)).option(*transfer, Fields::number);
                (37, f.config(config))
            }
            Message::Vote { ballot, outcome, config } => {
                (38, f.ballot(ballot).outcome(outcome).option(config.as_ref(), Fields::config))
            }
            Message::Renew { sequence, lease_ms, config, learnt } => {
                let f = f.number(*sequence).number(*lease_ms).version(*config);
                (39, f.number(learnt.0).byte(learnt.1))
            }
            Message::Renewed { sequence, membership, promised, firm, config, flags } => {
                let f =
                    f.number(*sequence).version(*membership).byte(u8::from(*promised)).byte(u8::from(*firm));
                (40, f.version(*config).flags(*flags))
            }
            Message::Configuration(config) => (41, f.config(config)),
            Message::Recover { round, incarnation } => (33, f.number(*round).number(*incarnation)),
            Message::Recovered { round, incarnation, state, flags } => {
                let f = f.number(*round).number(*incarnation);
                let f = match state {
                    Known::Nothing => f.byte(0),
                    Known::Founded(config) => f.byte(2).config(config),
                };
                (42, f.flags(*flags))
            }
            Message::ProposeTransfer => (35, f),
            Message::TransferReady { majority } => (36, f.byte(u8::from(*majority))),
        }
    }
}

/// What a frame has in it, read one field after the other; none: it has less.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    fn raw(&mut self, count: usize) -> Option<&[u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        let count = self.small()?;
        String::from_utf8(self.raw(count)?.to_vec()).ok()
    }

    fn id(&mut self) -> Option<u128> {
        let bytes = (self.number()? == 16).then_some(16)?;
        Some(u128::from_be_bytes(self.raw(bytes)?.try_into().ok()?))
    }

    fn version(&mut self) -> Option<Version> {
        Some((self.number()?, self.small()?))
    }

    /// All processes of these tests are on IPv4.
    fn address(&mut self) -> Option<SocketAddr> {
        (self.byte()? == 0).then_some(())?;
        let host: [u8; 4] = self.raw(4)?.try_into().ok()?;
        Some(SocketAddr::from((Ipv4Addr::from(host), self.small()?)))
    }

    fn peer(&mut self) -> Option<Peer> {
        Some(Peer {
            id: self.id()?,
            incarnation: self.number()?,
            name: self.text()?,
            address: self.address()?,
            priority: self.small()?,
            revision: self.text()?,
        })
    }

    fn config(&mut self) -> Option<Config> {
        let version = self.version()?;
        let voters = (0..self.number()?).map(|_| self.text()).collect::<Option<_>>()?;
        Some(Config { version, voters, lease_ms: self.small()?, bound_ms: self.small()? })
    }

    fn ballot(&mut self) -> Option<Ballot> {
        Some(Ballot {
            vote: self.byte()? == 1,
            epoch: self.number()?,
            incarnation: self.number()?,
            asked_at: (self.number()?, self.small()?),
            lease_ms: self.small()?,
        })
    }

    /// The messages that a stranger answers, or learns from.
    fn message(&mut self, tag: u16) -> Option<Message> {
        Some(match tag {
            19 => {
                let (sequence, lease_ms) = (self.small()?, self.small()?);
                Message::Heartbeat { sequence, lease_ms, learnt: (self.small()?, self.byte()?) }
            }
            37 => {
                let (ballot, contender) = (self.ballot()?, self.byte()? == 1);
                let transfer = if self.byte()? == 1 { Some(self.number()?) } else { None };
                Message::VoteRequest { ballot, contender, transfer, config: self.config()? }
            }
            39 => {
                let (sequence, lease_ms, config) = (self.small()?, self.small()?, self.version()?);
                Message::Renew { sequence, lease_ms, config, learnt: (self.small()?, self.byte()?) }
            }
            41 => Message::Configuration(self.config()?),
            33 => Message::Recover { round: self.small()?, incarnation: self.number()? },
            _ => return None,
        })
    }

    fn frame(&mut self, tag: u16) -> Option<Frame> {
        Some(match tag {
            HELLO => {
                let _versions = (self.number()?, self.number()?);
                let _cluster = self.text()?;
                Frame::Hello(self.peer()?)
            }
            REFUSE => Frame::Refuse { why: self.number()?, text: self.text()? },
            BYE => Frame::Bye,
            CONFIRM => Frame::Confirm(Confirm {
                id: self.id()?,
                incarnation: self.number()?,
                token: self.number()?,
                reached: (self.address()?, self.address()?),
            }),
            CONFIRMED => Frame::Confirmed(match self.byte()? {
                0 => Confirmed::Own,
                1 => Confirmed::Foreign,
                _ => Confirmed::Another,
            }),
            16..=42 => {
                let _stamp = (self.text()?, self.id()?, self.number()?);
                Frame::Message { epoch: self.number()?, message: self.message(tag) }
            }
            tag => Frame::Other(tag),
        })
    }
}

/// The first whole frame of what has been received, and its length in bytes; none: more has to come.
pub fn first(received: &[u8]) -> Option<(Frame, usize)> {
    let length = u32::from_le_bytes(received.first_chunk().copied()?) as usize + 4;
    let frame = received.get(..length)?;
    let tag = u16::from_le_bytes([frame[4], frame[5]]);
    Some((Reader(&frame[HEADER_BYTES..]).frame(tag).unwrap_or(Frame::Other(tag)), length))
}
