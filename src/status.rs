//! `bellwether status`: the members table.
