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

  test('have the columns of the record and of the run in order, without defaults', async () => {
    await publish(await toPublication(['{"id":"a"}']))
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
      '_extra json',
      '_run_id text',
      '_read_at timestamp with time zone',
      '_deleted_at timestamp with time zone',
    ])
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
    const [first, ...others] = await Promise.allSettled([
      publish(await on(1, ['a', 'b'])),
      publish(await on(2, ['b', 'c'])),
      publish(await workplace.toPublication('plans', [['{"id":"p"}']], { run: 'day 1' })),
    ])
    expect(others).toMatchObject([{ value: { fresh: true } }, { value: { fresh: true } }])
    // It is refused if the later read was faster.
    if (first.status === 'rejected') expect(first.reason).toMatchObject({ name: 'OlderReadError' })
    const merged = ['b of day 2', 'c of day 2']
    if (first.status === 'fulfilled') merged.unshift('a of day 1')
    expect(await names()).toEqual(merged)
    expect(await ask('select count(*)::text as contacts from billing.customer_contacts')).toEqual([
      { contacts: `${merged.length}` },
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
