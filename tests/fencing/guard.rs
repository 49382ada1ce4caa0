//! What the guard of `examples/fencing-postgresql/guard.sql` refuses, statement by statement, and that two
//! transactions cannot pass it at a time.

use crate::database::{Database, OWNER, WORKER};

const STALE: &str = "LF001";
const NO_TOKEN: &str = "LF002";
const NOT_ENTERED: &str = "LF003";
const NO_PRIVILEGE: &str = "42501";
const SERIALIZATION_FAILURE: &str = "40001";

const INSERT: &str = "insert into journal (epoch, entry) values (0, 'x');";

/// A transaction that enters with this epoch, and writes.
fn write(epoch: &str) -> String {
    format!("begin; select fencing.enter('journal', 'jobs', {epoch}); {INSERT} commit;")
}

fn rows(database: &Database) -> String {
    database.run(OWNER, "select count(*) from journal").unwrap()
}

fn epoch(database: &Database) -> String {
    database.run(OWNER, "select epoch from fencing.guards").unwrap()
}

#[test]
#[ignore = "needs root and PostgreSQL"]
fn the_guard_takes_epochs_that_do_not_fall() {
    let database = Database::start(None);
    for (epoch, wanted) in [("2", Ok("")), ("2", Ok("")), ("5", Ok("")), ("4", Err(STALE)), ("5", Ok(""))] {
        let got = database.run(WORKER, &write(epoch));
        assert_eq!(got.as_deref().map_err(String::as_str), wanted, "epoch {epoch}");
    }
    assert_eq!((rows(&database), epoch(&database)), ("4".to_owned(), "5".to_owned()));
    // The files may run again at any time.
    database.apply("guard.sql");
    database.apply("journal.sql");
    assert_eq!(database.run(WORKER, &write("4")), Err(STALE.to_owned()));
    // What a rolled back transaction has raised is not raised.
    database.run(WORKER, "begin; select fencing.enter('journal', 'jobs', 9); rollback;").unwrap();
    assert_eq!(epoch(&database), "5");
    database.run(WORKER, "begin; select fencing.enter('journal', 'jobs', 4611686018427387904);").unwrap();
}

#[test]
#[ignore = "needs root and PostgreSQL"]
fn a_write_needs_a_token_and_its_own_transaction() {
    let database = Database::start(None);
    // Before any election the epoch is 0, and so is the guard's at first.
    assert_eq!(database.run(WORKER, &write("0")), Err(NO_TOKEN.to_owned()));
    database.run(WORKER, &write("2")).unwrap();
    let enter = "select fencing.enter('journal', 'jobs', 2);";
    let cases = [
        (write("0"), NO_TOKEN),
        (write("-1"), NO_TOKEN),
        (write("null"), NO_TOKEN),
        ("select fencing.enter('journal', 'tasks', 2);".to_owned(), NO_TOKEN),
        ("select fencing.enter('ledger', 'jobs', 2);".to_owned(), NO_TOKEN),
        ("select fencing.enter(null, null, null);".to_owned(), NO_TOKEN),
        (INSERT.to_owned(), NOT_ENTERED),
        (format!("{enter} {INSERT}"), NOT_ENTERED),
        (format!("begin; {enter} commit; begin; {INSERT}"), NOT_ENTERED),
        (format!("begin; savepoint a; {enter} rollback to a; {INSERT}"), NOT_ENTERED),
        ("copy journal (epoch, entry) from stdin;\n1\tx\n\\.\n".to_owned(), NOT_ENTERED),
        (format!("begin; {enter} update journal set entry = 'y';"), NO_PRIVILEGE),
        (format!("begin; {enter} delete from journal;"), NO_PRIVILEGE),
        ("truncate journal;".to_owned(), NO_PRIVILEGE),
        ("update fencing.guards set epoch = 0;".to_owned(), NO_PRIVILEGE),
        ("delete from fencing.guards;".to_owned(), NO_PRIVILEGE),
        ("truncate fencing.guards;".to_owned(), NO_PRIVILEGE),
        ("select * from fencing.guards;".to_owned(), NO_PRIVILEGE),
        ("alter table journal disable trigger fenced;".to_owned(), NO_PRIVILEGE),
        ("drop trigger fenced on journal;".to_owned(), NO_PRIVILEGE),
        ("set session_replication_role = replica;".to_owned(), NO_PRIVILEGE),
    ];
    for (script, state) in cases {
        assert_eq!(database.run(WORKER, &script), Err(state.to_owned()), "{script}");
    }
    // The trigger also stops the owner's mistakes.
    for script in ["update journal set entry = 'y';", "delete from journal;", "truncate journal;"] {
        assert_eq!(database.run(OWNER, script), Err(NOT_ENTERED.to_owned()), "{script}");
    }
    // Objects of the caller's own do not take the place of the guard's.
    let shadow = "create temporary table guards (resource text); set search_path = pg_temp, fencing, public;";
    assert_eq!(database.run(WORKER, &format!("{shadow} {INSERT}")), Err(NOT_ENTERED.to_owned()));
    assert_eq!(rows(&database), "1");
    // A guard that has gone lets no write pass.
    database.run(OWNER, "delete from fencing.guards").unwrap();
    assert_eq!(database.run(WORKER, &write("9")), Err(NO_TOKEN.to_owned()));
}

/// Numbers of transactions begin anew in a restored dump. There the last transaction that entered may have
/// the number of one that is to come. Two transactions may begin at the same time.
#[test]
#[ignore = "needs root and PostgreSQL"]
fn only_number_and_time_together_name_a_transaction() {
    let database = Database::start(None);
    database.run(WORKER, &write("1")).unwrap();
    let (number, time) = ("entered_xid = pg_current_xact_id()", "entered_at = transaction_timestamp()");
    for (own, wanted) in [
        (number.to_owned(), Err(NOT_ENTERED.to_owned())),
        (time.to_owned(), Err(NOT_ENTERED.to_owned())),
        (format!("{number}, {time}"), Ok(String::new())),
    ] {
        let script = format!("begin; update fencing.guards set {own}; {INSERT}");
        assert_eq!(database.run(OWNER, &script), wanted, "{own}");
    }
}

/// One transaction enters and stays open. Another one waits for it, and then compares with what it has left.
#[test]
#[ignore = "needs root and PostgreSQL"]
fn of_two_transactions_one_waits_for_the_other() {
    let database = Database::start(None);
    let mut wanted_rows = 0;
    let (passes, stale) = (Ok(String::new()), Err(STALE.to_owned()));
    let conflict = Err(SERIALIZATION_FAILURE.to_owned());
    // The first one commits late, though a later leader is there already: its write comes before the later
    // one's. After that it is stale.
    for (level, epochs, second) in [
        ("read committed", [1, 2], &passes),
        ("read committed", [4, 3], &stale),
        ("repeatable read", [5, 6], &conflict),
        ("serializable", [8, 7], &conflict),
    ] {
        let [early, late] = epochs.map(|epoch| {
            format!(
                "begin isolation level {level}; select fencing.enter('journal', 'jobs', {epoch}); {INSERT}"
            )
        });
        let mut first = database.session(WORKER, "first");
        first.send(&early);
        database.waits_for("first", "state = 'idle in transaction' and query like 'insert%'");
        let mut other = database.session(WORKER, "other");
        other.send(&format!("{late} commit;"));
        database.waits_for("other", "wait_event_type = 'Lock'");
        first.send("commit;");
        first.end().unwrap();
        assert_eq!(&other.end(), second, "{level} {epochs:?}");
        wanted_rows += if second.is_ok() { 2 } else { 1 };
        assert_eq!(rows(&database), wanted_rows.to_string(), "{level} {epochs:?}");
    }
    // An old snapshot sees no old guard.
    let mut old = database.session(WORKER, "old");
    old.send("begin isolation level repeatable read; select count(*) from journal;");
    database.waits_for("old", "state = 'idle in transaction' and query like 'select%'");
    database.run(WORKER, &write("9")).unwrap();
    old.send(&format!("select fencing.enter('journal', 'jobs', 8); {INSERT} commit;"));
    assert_eq!(old.end(), conflict);
}

/// A leader that stops within its transaction keeps the next one out only for a while.
#[test]
#[ignore = "needs root and PostgreSQL"]
fn the_database_ends_a_transaction_that_pauses() {
    let database = Database::start(None);
    assert_eq!(database.run(WORKER, "show idle_in_transaction_session_timeout"), Ok("10s".to_owned()));
    database.run(OWNER, "alter role worker set idle_in_transaction_session_timeout = '3s'").unwrap();
    let mut paused = database.session(WORKER, "paused");
    paused.send(&write("1").replace("commit;", ""));
    database.waits_for("paused", "state = 'idle in transaction' and query like 'insert%'");
    database.run(WORKER, &write("2")).unwrap();
    paused.end().unwrap();
    assert_eq!((rows(&database), epoch(&database)), ("1".to_owned(), "2".to_owned()));
}

/// After the epochs have begun anew, the owner gives the resource to an election of another name.
#[test]
#[ignore = "needs root and PostgreSQL"]
fn epochs_that_begin_anew_need_the_owner() {
    let database = Database::start(None);
    database.run(WORKER, &write("41")).unwrap();
    assert_eq!(database.run(WORKER, &write("1")), Err(STALE.to_owned()));
    let reset = "update fencing.guards set election = 'jobs-2', epoch = 0 where resource = 'journal'";
    database.run(OWNER, reset).unwrap();
    assert_eq!(database.run(WORKER, &write("41")), Err(NO_TOKEN.to_owned()));
    assert_eq!(database.run(WORKER, &write("1").replace("jobs", "jobs-2")), Ok(String::new()));
}
