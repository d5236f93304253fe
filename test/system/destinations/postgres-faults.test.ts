import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Publication, PublishStep } from '../../../core/destinations/destination.ts'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'
import { publishInChild } from './children.ts'
import { askPostgres, password, startPostgres, type Postgres } from './postgres-server.ts'
import { createWorkplace, facts, noise, type Workplace } from '../../core/destinations/publication.ts'
import { writePart } from '../../core/exports/write-part.ts'

describe('PostgreSQL', () => {
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

  const publishTo = (url: string, publication: Publication) =>
    createPostgresDestination({ url }).publish(publication)
  const publish = (publication: Publication) => publishTo(url, publication)
  const before = () =>
    workplace.toPublication('customers', [['{"id":"a","contacts":[{}]}']], { run: 'before' })
  const large = (bytes: number, more: Partial<Publication> = {}) =>
    workplace.toPublication('customers', noise(bytes), {
      run: 'after',
      mode: 'incremental',
      facts: { ...facts, startedAt: '2026-03-02T03:00:00.000Z' },
      ...more,
    })
  const ids = async () => (await askPostgres(url, 'select id from billing.customers'))?.map(({ id }) => id)
  const runs = async () =>
    (await askPostgres(url, 'select run from billing._exports order by run'))?.map(({ run }) => run)

  test.each<{ killAt: PublishStep; has: readonly string[] }>([
    { killAt: 'staged', has: [] },
    { killAt: 'counted', has: [] },
    { killAt: 'counted', has: ['before'] },
    { killAt: 'visible', has: ['before'] },
  ])(
    'with the runs $has is whole after a SIGKILL of who published when it was $killAt, and takes it again',
    async ({ killAt, has }) => {
      if (has.length > 0) await publish(await before())
      const publication = await large(1_000_000)
      const { signal } = await publishInChild(workplace, { to: { postgres: url }, publication, killAt })
      expect(signal).toBe('SIGKILL')
      const isThere = killAt === 'visible'
      expect((await runs()) ?? []).toEqual(isThere ? ['after', ...has] : has)
      expect((await ids()) ?? []).toHaveLength(has.length + (isThere ? 1_000 : 0))
      expect(await publish(publication)).toMatchObject({ fresh: !isThere })
      expect(await ids()).toHaveLength(has.length + 1_000)
    },
  )

  test.each<PublishStep>(['staged', 'counted'])(
    'is whole after its own death when a publication was %s: a sentence, and it takes it again when it is back',
    async (step) => {
      await publish(await before())
      const publication = await large(1_000_000)
      const onStep = (reached: PublishStep) => {
        if (reached === step) postgres.killAll()
      }
      await expect(publish({ ...publication, onStep })).rejects.toMatchObject({
        name: 'WarehouseAwayError',
        message: expect.stringMatching(
          /^(Can't reach PostgreSQL for|PostgreSQL failed for) schema billing of 127\.0\.0\.1:/,
        ),
      })
      await postgres.restart()
      expect([await ids(), await runs()]).toEqual([['a'], ['before']])
      await publish(publication)
      expect(await ids()).toHaveLength(1_001)
    },
  )

  test('is kept through its own death also where commits of its user need not be on the disk', async () => {
    await publish(await before())
    await askPostgres(url, `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`)
    await askPostgres(url, `alter system set wal_writer_delay = '10s'`)
    await askPostgres(url, 'select pg_reload_conf()')
    const onStep = (reached: PublishStep) => {
      if (reached === 'visible') postgres.killAll()
    }
    await publish({ ...(await large(1_000)), onStep })
    await postgres.restart()
    expect(await runs()).toEqual(['after', 'before'])
  })

  // A limit on the size of the server's files stands for the disk's: they can't be extended any more (EFBIG).
  test('on a full disk ends the publishing with a sentence, as it was', { tags: ['long'] }, async () => {
    const full = await startPostgres({ fileBytes: 20_000_000 })
    try {
      url = await full.createDatabase()
      await expect(publish(await large(40_000_000))).rejects.toMatchObject({ name: 'UnwritableError' })
      expect(await runs()).toBeUndefined()
      await publish(await before())
      await expect(publish(await large(40_000_000))).rejects.toMatchObject({
        name: 'UnwritableError',
        message: expect.stringMatching(
          /^Can't write to schema billing of .*: the file would be larger than is allowed \(EFBIG\)/,
        ),
      })
      expect([await ids(), await runs()]).toEqual([['a'], ['before']])
    } finally {
      await full.close()
    }
  })

  test('refuses parts that are no rows of their table, without showing a cell', async () => {
    const publication = await before()
    const [part] = publication.parts
    const parts = [await writePart({ ...part!, text: 'secret,cells\n' }), ...publication.parts.slice(1)]
    const refused: unknown = await publish({ ...publication, parts }).catch((error: unknown) => error)
    expect(refused).toMatchObject({ name: 'PartsDamagedError' })
    expect(inspect(refused, { depth: 10, showHidden: true })).not.toMatch(/secret|cells/)
    expect(await askPostgres(url, `select nspname from pg_namespace where nspname = 'billing'`)).toEqual([])
  })

  describe('that does not let us in', () => {
    const refused = async (address: string, publication: Publication) => {
      const error: unknown = await publishTo(address, publication).then(
        () => undefined,
        (error: unknown) => error,
      )
      // Neither the sentence nor anything that could be logged with it.
      for (const shown of [password, encodeURIComponent(password), 'not the password'])
        expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(shown)
      return error
    }

    test.each([
      [
        'the password is wrong',
        () => postgres.toUrl('postgres', 'postgres', 'not the password'),
        'WarehouseRefusedError',
        /refuses the login to .*password authentication failed/,
      ],
      [
        'there is no such database',
        () => postgres.toUrl('nowhere'),
        'WarehouseRefusedError',
        /database "nowhere" does not exist/,
      ],
      [
        'there is no such user',
        () => postgres.toUrl('postgres', 'nobody'),
        'WarehouseRefusedError',
        /authentication failed for user "nobody"/,
      ],
      [
        'nobody listens',
        () => postgres.toUrl('postgres').replace(`:${postgres.port}`, ':1'),
        'WarehouseAwayError',
        /Can't reach PostgreSQL for schema billing of 127\.0\.0\.1:1\/postgres.*ECONNREFUSED/,
      ],
    ])('because %s says so in a sentence without the password', async (_title, address, name, message) => {
      expect(await refused(address(), await before())).toMatchObject({
        name,
        message: expect.stringMatching(message),
      })
    })

    test('into the schema says which right is missing', async () => {
      await publish(await before())
      await askPostgres(url, `create role reader login password 'secret'`)
      await askPostgres(url, 'grant usage on schema billing to reader')
      await askPostgres(url, 'grant select on all tables in schema billing to reader')
      const database = new URL(url).pathname.slice(1)
      try {
        for (const schema of ['billing', 'elsewhere'])
          expect(
            await refused(postgres.toUrl(database, 'reader', 'secret'), await large(1_000, { schema })),
          ).toMatchObject({
            name: 'WarehouseRefusedError',
            message: expect.stringMatching(
              new RegExp(`denies access to schema ${schema} of .*permission denied`),
            ),
          })
      } finally {
        await askPostgres(url, 'drop owned by reader; drop role reader')
      }
      expect(await runs()).toEqual(['before'])
    })

    test('with a database that is not in UTF-8 says so', async () => {
      await askPostgres(
        postgres.toUrl('postgres'),
        `create database latin encoding 'LATIN1' template template0`,
      )
      expect(await refused(postgres.toUrl('latin'), await before())).toMatchObject({
        name: 'WarehouseRefusedError',
        message: expect.stringMatching(/encoding LATIN1/),
      })
    })
  })

  test('shows a reader whole states only, whenever it looks', async () => {
    const state = (date: number) => {
      const records = Array.from({ length: date % 2 === 0 ? 400 : 700 }, (_, at) =>
        JSON.stringify({ id: `c${at}`, name: `day ${date}`, contacts: [{ id: `${date}` }, {}] }),
      )
      return workplace.toPublication('customers', [records], {
        run: `day ${date}`,
        maxDeletes: 'all',
        facts: {
          ...facts,
          startedAt: `2026-03-0${date}T03:00:00.000Z`,
          completeThrough: '2026-03-09T00:00:00Z',
        },
      })
    }
    await publish(await state(1))
    const reader = new Client({ connectionString: url })
    await reader.connect()
    const over = new AbortController()
    const seen = new Set<string>()
    const reading = (async () => {
      while (!over.signal.aborted) {
        const { rows } = await reader.query<Record<string, string>>(`select
          (select string_agg(distinct name, ',') from billing.customers where _deleted_at is null) as names,
          (select count(*) from billing.customers where _deleted_at is null) as customers,
          (select count(*) from billing.customer_contacts where _deleted_at is null) as contacts,
          (select max(run) from billing._exports) as run`)
        const { names, customers, contacts, run } = rows[0]!
        seen.add(`${run}: ${customers} customers of ${names}, ${contacts} contacts`)
      }
    })()
    for (const date of [2, 3, 4, 5]) await publish(await state(date))
    over.abort()
    await reading
    await reader.end()
    // What was created is unknown, so nothing is marked: those of day 3 that day 4 lacks stay as they are.
    const whole = [1, 2, 3, 4, 5].map((date) => {
      const names = date % 2 === 0 ? `day ${date - 1},day ${date}` : `day ${date}`
      return `day ${date}: 700 customers of ${names}, 1400 contacts`
    })
    expect(whole).toEqual(expect.arrayContaining([...seen]))
    expect(seen.size).toBeGreaterThan(1)
  })

  const isWaiting = async () =>
    (await askPostgres(
      url,
      `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
        and application_name = 'connector'`,
    ))!.length > 0

  test('waits for a publication that is merging', async () => {
    const other = new Client({ connectionString: url })
    await other.connect()
    await other.query(`begin; select pg_advisory_xact_lock(hashtextextended('connector billing', 0))`)
    const publishing = publish(await before())
    await waitFor(isWaiting)
    await other.query('commit')
    await other.end()
    expect(await publishing).toMatchObject({ fresh: true })
    expect(await runs()).toEqual(['before'])
  })

  test('whose tables a reader has locked is waited for, and ended with a sentence at the signal', async () => {
    await publish(await before())
    const reader = new Client({ connectionString: url })
    await reader.connect()
    await reader.query('begin; lock table billing.customers in access exclusive mode')
    const ending = new AbortController()
    const publishing = publish({ ...(await large(1_000)), signal: ending.signal })
    await waitFor(isWaiting)
    ending.abort(new Error('ended by the test'))
    await expect(publishing).rejects.toThrow('ended by the test')
    await reader.query('commit')
    await reader.end()
    expect(await runs()).toEqual(['before'])
  })

  test('says of every table and column in the database what it is, and has a primary key', async () => {
    await publish(await before())
    expect(
      await askPostgres(
        url,
        `select col_description('billing.customers'::regclass, attnum) as note from pg_attribute
          where attrelid = 'billing.customers'::regclass and attname in ('country_code', '_deleted_at') order by attnum`,
      ),
    ).toEqual([
      { note: 'customers.country.code: telephone prefix' },
      { note: expect.stringMatching(/^the start of the first read that proved the record gone/) },
    ])
    expect(
      await askPostgres(
        url,
        `select conrelid::regclass as table, pg_get_constraintdef(oid) as key from pg_constraint
          where contype = 'p' and conrelid::regclass::text like 'billing.customer%' order by 1`,
      ),
    ).toEqual([
      { table: 'billing.customers', key: 'PRIMARY KEY (id)' },
      { table: 'billing.customer_contacts', key: 'PRIMARY KEY (customer_id, "position")' },
    ])
  })

  test('takes a schema that a publication names, and test data into one of its own', async () => {
    await publish({ ...(await before()), schema: 'my "schema"' })
    await publish({ ...(await before()), testMode: true })
    const schemas = await askPostgres(
      url,
      `select table_schema as name from information_schema.tables where table_name = 'customers' order by 1`,
    )
    expect(schemas).toEqual([{ name: 'billing_test' }, { name: 'my "schema"' }])
    await expect(publish({ ...(await large(1_000)), schema: 'billing_test' })).rejects.toMatchObject({
      name: 'NotAdmittedError',
      message: expect.stringMatching(/mode test, not live/),
    })
  })
})

async function waitFor(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(20)
}
