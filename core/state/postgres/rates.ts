/**
 * The rate of all workers. Unlogged: after a crash of PostgreSQL the tables are empty, and the first request waits for a
 * second, which makes up for what was sent before. With tables that were just created nothing was. A pause that the
 * service has asked for may be longer than a second, so it is kept.
 */
export const createRates = (): string[] => [
  `create unlogged table rates (
    name text primary key, next_at timestamptz not null,
    permit bigint not null default 0, slowed_permit bigint not null default -1,
    factor float8 not null default 1, factored_at timestamptz not null default '-infinity',
    writers_until timestamptz not null default '-infinity'
  )`,
  `create unlogged table rate_workers (
    worker text primary key, per_second float8 not null, seen_at timestamptz not null
  )`,
  `create table rate_pauses (name text primary key, until timestamptz not null)`,
  `insert into rates (name, next_at) values ('all', clock_timestamp())`,
  takePermits,
  slowDown,
  pause,
]

/**
 * After a 429 the rate is a share of the full one, which grows back by 5 % of the full rate a second. PostgreSQL before 17
 * subtracts no infinite time.
 */
const factor = (lane: string, at: string) =>
  `least(1, ${lane}.factor + 0.05 * least(1000, extract(epoch from ${at} - greatest(${lane}.factored_at, ${at} - interval '1000 s'))))`

/**
 * What is given out leaves room for permits that are used late, by 30 or 60 ms and 5 ms of jitter, as
 * core/billing/permits.ts has it. A worker that is alone knows it a second before it gets more: by then nobody uses a
 * permit of before.
 */
const share = (alone: string, rate: string) =>
  `least(0.985, (${rate} + 1) / (${rate} * case when ${alone} then 1.035 else 1.065 end))`

/**
 * One permit is one request. Granted is what comes due within 50 ms: more would still leave after a pause. A read gets
 * only what is due now while writes wait, so it never takes a permit ahead of one. A worker that is alone gets more than it
 * wants, up to 100 ms ahead, so that it need not ask for each request: nobody else could use them, and its own pause makes
 * them void. The row's lock orders all workers; the time is read once the lock is held.
 */
const takePermits = `
create function take_permits(
  worker_name text, my_per_second float8, run text, run_per_second float8,
  wanted int, is_write boolean, left_waiting boolean, waited_ms float8,
  out first_permit bigint, out waits_ms float8[], out retry_ms float8, out held_by_run boolean, out workers int,
  out at_ms float8
) language plpgsql set search_path from current as $$
declare
  lane rates; run_lane rates; t timestamptz; base timestamptz; run_base timestamptz;
  per_second float8; step interval; run_step interval; ahead interval; n int := 0;
  paused_until timestamptz; alone boolean; late interval; most int;
begin
  perform set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '2s', true);
  waits_ms := '{}'; first_permit := 0; held_by_run := false; workers := 1;
  if run is not null then
    select * into run_lane from rates where name = 'run ' || run for update;
    if not found then
      delete from rates where name like 'run %' and next_at < clock_timestamp() - interval '1 day';
      insert into rates (name, next_at) values ('run ' || run, clock_timestamp()) on conflict do nothing;
      select * into run_lane from rates where name = 'run ' || run for update;
    end if;
    run_step := make_interval(secs => 1 / (run_per_second * ${share('false', 'run_per_second')}));
    t := clock_timestamp();
    -- A clock that was set back must not hold the run for that long.
    run_base := case when run_lane.next_at > t + run_step + interval '2 s' then t else run_lane.next_at end;
    if run_base > t then
      at_ms := extract(epoch from t) * 1000; held_by_run := true; retry_ms := extract(epoch from run_base - t) * 1000;
      select count(*) into workers from rate_workers where seen_at > t - interval '10 s';
      return;
    end if;
  end if;
  select * into lane from rates where name = 'all' for update;
  t := clock_timestamp();
  at_ms := extract(epoch from t) * 1000;
  insert into rate_workers as w values (worker_name, my_per_second, t)
    on conflict (worker) do update set per_second = my_per_second, seen_at = t
    where w.seen_at not between t - interval '1 s' and t or w.per_second <> my_per_second;
  select count(*), min(w.per_second) into workers, per_second from rate_workers w where w.seen_at > t - interval '10 s';
  select count(*) = 1 into alone from rate_workers w where w.seen_at > t - interval '11 s';
  select max(until) into paused_until from rate_pauses;
  if paused_until > t then
    retry_ms := extract(epoch from paused_until - t) * 1000; return;
  end if;
  if lane.name is null then
    insert into rates (name, next_at) values ('all', t + interval '1 s') on conflict do nothing;
    retry_ms := 1000; return;
  end if;
  per_second := coalesce(per_second, my_per_second);
  step := make_interval(secs => 1 / (per_second * ${share('alone', 'per_second')} * ${factor('lane', 't')}));
  -- A permit may have been due a moment ago, or what late questions cost would never be made up for; but not before its
  -- request began to wait, because it is void as long after its own time as any other.
  late := make_interval(secs => least(case when alone then 15 else 30 end, greatest(0, waited_ms)) / 1000);
  base := case when lane.next_at > t + 32 * step + interval '2 s' then t + interval '1 s'
    else greatest(lane.next_at, t - late, run_base) end;
  ahead := case when not is_write and lane.writers_until > t then interval '0'
    when alone and run is null then interval '100 ms' else interval '50 ms' end;
  most := wanted + case when alone and run is null and per_second < 'infinity' then 100 else 0 end;
  while n < most and base + n * step <= t + ahead and (run is null or n = 0 or run_step <= step) loop
    waits_ms := waits_ms || (extract(epoch from base + n * step - t) * 1000)::float8;
    n := n + 1;
  end loop;
  first_permit := lane.permit;
  retry_ms := greatest(1, extract(epoch from base + n * step - t - ahead) * 1000);
  if n > 0 or is_write then
    update rates set next_at = base + n * step, permit = lane.permit + n,
      writers_until = case when is_write and (left_waiting or n < wanted) then t + 2 * step + interval '50 ms'
        else lane.writers_until end
      where name = 'all';
  end if;
  if n > 0 and run is not null then
    -- From when the last one is due: two of a run are never closer than its rate.
    update rates set next_at = base + (n - 1) * step + run_step where name = 'run ' || run;
  end if;
end $$`

/** Halves the rate once for all permits that were given before: those on their way get the same answer. */
const slowDown = `
create function slow_down(refused_permit bigint) returns void language plpgsql set search_path from current as $$
declare lane rates; t timestamptz;
begin
  perform set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '2s', true);
  select * into lane from rates where name = 'all' for update;
  t := clock_timestamp();
  if refused_permit <= lane.slowed_permit then return; end if;
  update rates set factor = greatest(${factor('lane', 't')} / 2, 1.0 / 32), factored_at = t, slowed_permit = lane.permit - 1
    where name = 'all';
end $$`

const pause = `
create function pause_permits(ms float8) returns void language plpgsql set search_path from current as $$
begin
  perform set_config('lock_timeout', '2s', true);
  insert into rate_pauses as kept values ('all', clock_timestamp() + make_interval(secs => ms / 1000))
    on conflict (name) do update set until = greatest(kept.until, excluded.until);
end $$`
