//! What the election is about, as data: identities, epochs, settings, events in and actions out.

pub(super) mod action;
pub(super) mod announced_values;
pub(super) mod application;
pub(super) mod epoch;
pub(super) mod event;
pub(super) mod hold;
pub(super) mod identity;
pub(super) mod member;
pub(super) mod operation;
pub(super) mod pace;
pub(super) mod settings;
pub(super) mod status;
pub(super) mod time;
pub(super) mod timer;
pub(super) mod validate;
pub(super) mod vote;
pub(super) mod voter_config;
