import { type Kysely, sql } from 'kysely'

/**
 * Claims and moves several changes of a run in one statement, which is a transaction of its own: one round trip and one
 * commit, and no lock is held while the worker is frozen. As a function, because PostgreSQL keeps its plans, also behind
 * pgbouncer: to plan such a statement each time took longer than to execute it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(writeChanges).execute(db)
}

const moved = [
  'state',
  'holds_key',
  'not_before',
  'sent_at',
  'answered_at',
  'closed_at',
  'answer_id',
  'answer',
  'outcome',
  'error',
  'unknown_since',
  'lookups',
  'checked_at',
  'before',
  'resolved_by',
  'resolved_why',
  'claims',
  'sends',
]

/**
 * Returns a row for each claim and then for each move, in their order: a claimed change, of a moved one its id alone. All
 * columns are null if it was not written, and `run` is set if its sender has lost the right. `moves`: a JSON array of
 * `{ id, token, from, claims, outcome, patch }`; columns that a patch leaves out stay as they are.
 *
 * The lock of the sender's row orders claims and take-overs: a claim that waits for it finds another token. It comes before
 * those of changes, as a take-over has it. Compared with "is not distinct from", which no index serves: a plan from before
 * the run was staged must not read all of its rows.
 */
const writeChanges = `
create function write_changes(
  sender_run text, tokens text[], ids bigint[], sends_before integer[], ats bigint[], befores text[], moves json
) returns setof changes language plpgsql set search_path from current as $$
declare change changes; move json; holder text;
begin
  -- For this transaction: behind pgbouncer, a session has no settings of its own.
  perform set_config('synchronous_commit', 'on', true), set_config('lock_timeout', '5s', true);
  if sender_run is not null then
    select token into holder from senders where run = sender_run for update;
  end if;
  for i in 1 .. cardinality(ids) loop
    change := null;
    if tokens[i] is distinct from holder then
      change.run := sender_run;
    else
      update changes set state = 'sending', claims = claims + 1, sends = sends + 1, sent_at = ats[i],
        answered_at = null, lookups = 0, before = coalesce(befores[i], before)
        where id = ids[i] and (run, state, sends) is not distinct from (sender_run, 'staged', sends_before[i])
        returning * into change;
    end if;
    return next change;
  end loop;
  for move in select json_array_elements(moves) loop
    if move ->> 'token' is not null and move ->> 'token' is distinct from holder then
      change := null;
      change.run := sender_run;
      return next change;
      continue;
    end if;
    update changes as moved set (${moved.join(', ')}) =
      (select ${moved.map((name) => `patched.${name}`).join(', ')}
        from json_populate_record(moved, move -> 'patch') as patched)
      where id = (move ->> 'id')::bigint
        and state in (select json_array_elements_text(move -> 'from'))
        and (move ->> 'claims' is null or claims = (move ->> 'claims')::integer)
        and (move ->> 'outcome' is null or outcome = move ->> 'outcome');
    change := null;
    if found then change.id := (move ->> 'id')::bigint; end if;
    return next change;
  end loop;
end $$`
