import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Publication, PublishStep } from '../../../core/destinations/destination.ts'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'
import { publishInChild } from './children.ts'
import { askPostgres, startPostgres, type Postgres } from './postgres-server.ts'
import { createWorkplace, facts, type Workplace } from '../../core/destinations/publication.ts'
import { writePart } from '../../core/exports/write-part.ts'

describe('new tables in PostgreSQL', () => {
  let postgres: Postgres
  let workplace: Workplace
  let url: string
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())
  beforeEach(async () => {
    workplace = await createWorkplace()
    url = await postgres.createDatabase()
  })
  afterEach(() => workplace.close())

  const ask = (sql: string) => askPostgres(url, sql)
  const publish = (publication: Publication) => createPostgresDestination({ url }).publish(publication)
  const toPublication = (records: readonly string[], more: Partial<Publication> = {}) =>
    workplace.toPublication('customers', [records], { run: 'first', ...more })
  const names = async () =>
    (await ask('select name, _run_id as run from billing.customers order by id'))?.map(
      ({ name, run }) => `${name} of ${run}`,
    )

  describe('that are filled at once, or first staged because a row does not fit', () => {
    const plain = `{"id":"a","name":"","created":"2020-10-15T13:26:15.356289-03:00","metadata":{"a":1.50},
      "contacts":[{"id":"x","created":"2020-10-15T13:26:15Z"},{"id":"y"}]}`
    // PostgreSQL's bigint does not take this number, nor its jsonb these texts.
    const unusual = `{"id":"b","state":{"id":9223372036854775808},"metadata":{"a":"\\u0000"},
      "contacts":[{"unknown":"\\u0000"}]}`
    const retyped = `'state_id', 'metadata', '_extra'`

    /** What the catalog has of every column of every table, view and index, but for types that the unusual record needs. */
    const catalog = () =>
      ask(`select c.relname, c.relkind, c.relpersistence, array_to_string(c.reloptions, ',') as options,
          obj_description(c.oid) as about, pg_get_indexdef(c.oid) as index, a.attnum, a.attname, a.attnotnull,
          format_type(a.atttypid, a.atttypmod) as type, a.atthasdef, a.atthasmissing, a.attstorage,
          (select collname from pg_collation where oid = a.attcollation) as collation,
          col_description(c.oid, a.attnum) as note,
          (select kind from billing._columns where table_name = c.relname and column_name = a.attname) as kind
        from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'billing'::regnamespace and a.attnum > 0 and a.attname not in (${retyped})
        order by c.relname, a.attnum`)
    const rowsOfPlain = () =>
      ask(`select (to_jsonb(c) - 'metadata')::text as row, metadata->>'a' as a from billing.customers c where id = 'a'
        union all select to_jsonb(c)::text, null from billing.customer_contacts c where customer_id = 'a' order by 1`)
    const retypedTo = async () =>
      (
        await ask(`select format_type(atttypid, null) as type from pg_attribute where attname in (${retyped})
          and attrelid in ('billing.customers'::regclass, 'billing.customer_contacts'::regclass) order by 1`)
      )?.map(({ type }) => type)

    test('are the same, and so are their rows', async () => {
      await publish(await toPublication([plain]))
      const filled = { catalog: await catalog(), rows: await rowsOfPlain() }
      expect(filled.rows).toHaveLength(3)
      expect(await retypedTo()).toEqual(['bigint', 'jsonb', 'jsonb', 'jsonb'])
      url = await postgres.createDatabase()
      await publish(await toPublication([plain, unusual]))
      expect(await retypedTo()).toEqual(['json', 'json', 'jsonb', 'numeric'])
      expect({ catalog: await catalog(), rows: await rowsOfPlain() }).toEqual(filled)
      expect(
        await ask(`select state_id::text as state, metadata::text from billing.customers where id = 'b'`),
      ).toEqual([{ state: '9223372036854775808', metadata: '{"a":"\\u0000"}' }])
    })

    test('have the columns of the record and of the run in order, without defaults', async () => {
      await publish(await toPublication([plain]))
      const columns = await ask(`select attname || ' ' || format_type(atttypid, atttypmod)
          || coalesce((select ' ' || collname from pg_collation where oid = attcollation and collname <> 'default'), '')
          || case when attnotnull then ' not null' else '' end
          || case when atthasdef then ' default' else '' end as column
        from pg_attribute where attrelid = 'billing.customer_contacts'::regclass and attnum > 0 order by attnum`)
      expect(columns?.map(({ column }) => column)).toEqual([
        'customer_id text C not null',
        'position integer not null',
        'id text',
        'name text',
        'email text',
        'customer text',
        'orgunit text',
        'phone text',
        'invoicing boolean',
        'collections boolean',
        'created timestamp with time zone',
        'created_as_sent text',
        'updated timestamp with time zone',
        'updated_as_sent text',
        '_extra jsonb',
        '_run_id text',
        '_read_at timestamp with time zone',
        '_deleted_at timestamp with time zone',
      ])
    })
  })

  test('take the rows of a resource that a warehouse of an earlier layout lacks', async () => {
    await publish(await workplace.toPublication('plans', [['{"id":"p"}']], { run: 'first' }))
    await ask('update billing._warehouse set layout = 1')
    await publish(await toPublication(['{"id":"a","name":"Ana"}']))
    expect(await names()).toEqual(['Ana of first'])
    expect(await ask('select layout::text from billing._warehouse')).toEqual([{ layout: '3' }])
  })

  test('are refused, without showing a cell, to parts that are no rows of them', async () => {
    const publication = await toPublication(['{"id":"a","name":"Ana"}'])
    const [part] = publication.parts
    const parts = [await writePart({ ...part!, text: 'secret,cells\n' }), ...publication.parts.slice(1)]
    const refused: unknown = await publish({ ...publication, parts }).catch((error: unknown) => error)
    expect(refused).toMatchObject({ name: 'PartsDamagedError' })
    expect(inspect(refused, { depth: 10, showHidden: true })).not.toMatch(/secret|cells/)
    expect(await ask(`select nspname from pg_namespace where nspname = 'billing'`)).toEqual([])
  })

  test.each<PublishStep>(['staged', 'counted'])(
    'are not there after a SIGKILL of who published when they were %s, and are made the next time',
    async (killAt) => {
      const publication = await toPublication(['{"id":"a","name":"Ana"}'])
      const { signal } = await publishInChild(workplace, { to: { postgres: url }, publication, killAt })
      expect(signal).toBe('SIGKILL')
      expect(await names()).toBeUndefined()
      expect(await publish(publication)).toMatchObject({ fresh: true })
      expect(await publish(publication)).toMatchObject({ fresh: false })
      expect(await names()).toEqual(['Ana of first'])
    },
  )

  test('are made by one of several publications at once, and the others are merged into them', async () => {
    const on = (day: number, ids: readonly string[]) =>
      toPublication(
        ids.map((id) => `{"id":"${id}","name":"${id}","contacts":[{}]}`),
        {
          run: `day ${day}`,
          mode: 'incremental',
          facts: { ...facts, startedAt: `2026-03-0${day}T03:00:00.000Z` },
        },
      )
    const published = await Promise.all([
      publish(await on(1, ['a', 'b'])),
      publish(await on(2, ['b', 'c'])),
      publish(await workplace.toPublication('plans', [['{"id":"p"}']], { run: 'day 1' })),
    ])
    expect(published.map(({ fresh }) => fresh)).toEqual([true, true, true])
    expect(await names()).toEqual(['a of day 1', 'b of day 2', 'c of day 2'])
    expect(await ask('select count(*)::text as contacts from billing.customer_contacts')).toEqual([
      { contacts: '3' },
    ])
    expect(await ask('select id from billing.plans')).toEqual([{ id: 'p' }])
  })

  test('wait for a publication that is merging, and are merged into what it made', async () => {
    const other = new Client({ connectionString: url })
    await other.connect()
    await other.query(`begin; select pg_advisory_xact_lock(hashtextextended('billing-connector billing', 0))`)
    const publishing = publish(await toPublication(['{"id":"a","name":"Ana"}']))
    const isWaiting = async () =>
      (await ask(`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
        and application_name = 'billing-connector'`))!.length > 0
    while (!(await isWaiting())) await sleep(20)
    await other.query('commit')
    await other.end()
    expect(await publishing).toMatchObject({ fresh: true })
    expect(await names()).toEqual(['Ana of first'])
  })
})
