//! What the election is about, as data: identities, epochs, settings, events in and actions out.

/// Declares an enum with the name of each variant, as metrics, logs and answers have it.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Its name as a metric's label, in logs and in answers.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// All of them, so that metrics exist before they first count.
            pub const ALL: [$name; [$($text),*].len()] = [$($name::$variant),*];
        }
    };
}

pub(super) mod action;
pub(super) mod announced_values;
pub(super) mod application_health;
pub(super) mod epoch;
pub(super) mod event;
pub(super) mod hold;
pub(super) mod identity;
pub(super) mod lease;
pub(super) mod member;
pub(super) mod notification;
pub(super) mod operation;
pub(super) mod record;
pub(super) mod settings;
pub(super) mod status;
pub(super) mod time;
pub(super) mod timer;
pub(super) mod validate;
pub(super) mod vote;
pub(super) mod voter_config;
pub(super) mod voter_state;
