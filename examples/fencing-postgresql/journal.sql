-- A guarded table, to which leaders of the election `jobs` append. It needs guard.sql. A second run of this
-- file changes no row.
begin;

create table if not exists journal (
    -- In the order of the writes, since the guard lets one transaction after another in.
    id bigint generated always as identity primary key,
    epoch bigint not null,
    entry text not null
);

create or replace trigger fenced before insert or update or delete or truncate on journal
    for each statement execute function fencing.require('journal');

insert into fencing.guards (resource, election) values ('journal', 'jobs') on conflict do nothing;

-- The application's role: it owns nothing here, so it can neither change the guard nor disable the trigger.
do $$
begin
    create role worker login;
exception when duplicate_object then
    null;
end
$$;
grant usage on schema fencing to worker;
grant execute on function fencing.enter(text, text, bigint) to worker;
grant select, insert on journal to worker;
-- A leader that pauses within a transaction keeps the next one out. PostgreSQL ends its session then.
alter role worker set idle_in_transaction_session_timeout = '10s';

commit;
