-- A guard by which PostgreSQL refuses the writes of a stale leader. docs/fencing.md explains it.
--
--     psql --set ON_ERROR_STOP=1 --file guard.sql
--
-- The role that runs this file owns the guard, and is bound by nothing in it. An application needs a role of
-- its own. A second run of this file changes no row.
begin;

create schema if not exists fencing;

-- A row for each resource: the election that its leaders come from, and the highest epoch that has entered.
create table if not exists fencing.guards (
    resource text primary key,
    election text not null,
    epoch bigint not null default 0 check (epoch >= 0),
    -- The last transaction that entered. Numbers of transactions begin anew in a restored dump, and then a
    -- later transaction could have this one. So the guard has its time too.
    entered_xid xid8,
    entered_at timestamptz
);

-- The first statement of each transaction that writes to the resource. An equal epoch enters, a higher one
-- raises the guard's, and a lower one is refused.
create or replace function fencing.enter(of_resource text, by_election text, with_epoch bigint) returns void
language plpgsql
-- With the rights of the guard's owner, and with no object of the caller's in the place of one named here.
security definer set search_path = pg_catalog, pg_temp
as $$
declare
    guard fencing.guards;
begin
    -- The row stays locked until the transaction ends, so a check cannot grow old before the commit. Another
    -- leader waits here, and then compares with what this transaction has left.
    update fencing.guards
    set epoch = with_epoch, entered_xid = pg_current_xact_id(), entered_at = transaction_timestamp()
    where resource = of_resource and election = by_election and with_epoch >= 1 and epoch <= with_epoch;
    if found then
        return;
    end if;
    select * into guard from fencing.guards where resource = of_resource;
    if guard.election = by_election and guard.epoch > with_epoch and with_epoch >= 1 then
        raise exception using errcode = 'LF001',
            message = format('epoch %s is stale: %s has epoch %s', with_epoch, of_resource, guard.epoch),
            hint = 'A later leader has written. Roll back, and ask the sidecar again.';
    end if;
    raise exception using errcode = 'LF002',
        message = format('no fencing token: %s, election %s, epoch %s', of_resource, by_election, with_epoch),
        hint = 'The guard has no such resource, or another election for it. Epochs begin at 1.';
end
$$;

-- The trigger of each guarded table: its transaction has entered. The argument names the resource.
create or replace function fencing.require() returns trigger
language plpgsql
security definer set search_path = pg_catalog, pg_temp
as $$
begin
    perform from fencing.guards
    where resource = tg_argv[0]
        and entered_xid = pg_current_xact_id() and entered_at = transaction_timestamp();
    if not found then
        raise exception using errcode = 'LF003',
            message = format('%s on %s without fencing.enter for %s', tg_op, tg_table_name, tg_argv[0]),
            hint = 'Call fencing.enter first, in the same transaction.';
    end if;
    return null;
end
$$;

-- By default every role may call a function. Schema and table are closed to all but their owner.
revoke all on all functions in schema fencing from public;

commit;
