import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest'
import { createHash } from 'node:crypto'
import { Client } from 'pg'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'
import { toPlainJson } from '../../core/destinations/plain-value.ts'
import { createWorkplace, facts, type Workplace } from '../../core/destinations/publication.ts'
import { describeDestination } from '../../core/destinations/contract.ts'
import { askPostgres, startPostgres, type Postgres } from './postgres-server.ts'
import { usePostgres } from './use-postgres.ts'
import { describeWarehouse } from '../../core/destinations/warehouse.ts'
import { describeGone } from '../../core/destinations/warehouse-gone.ts'
import { asTexts, byKey, withoutScale } from '../../core/destinations/warehouse-rows.ts'

let postgres: Postgres
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.close())

const open = usePostgres()
describeWarehouse('postgres', open)
describeGone('postgres', open)
describeDestination('postgres', async () => {
  const warehouse = await open()
  const { destination, schema, testSchema } = warehouse
  return {
    destination,
    async rows({ testMode, tables }, name) {
      const table = tables.find((table) => table.name === name)!
      const rows = await warehouse.ask(
        `select ${asTexts(table)} from ${testMode ? testSchema : schema}."${name}" t order by ${byKey(table)}`,
      )
      return withoutScale(table, rows)
    },
    async remove(_, table) {
      await warehouse.ask(`drop table ${schema}.${table} cascade`)
    },
    close: async () => {},
  }
})

describe('tables in PostgreSQL', () => {
  let workplace: Workplace
  let url: string
  beforeEach(async () => {
    workplace = await createWorkplace()
    url = await postgres.createDatabase()
  })
  afterEach(() => workplace.close())

  const ask = (sql: string) => askPostgres(url, sql)
  const publish = async (
    run: string,
    records: string[],
    resource: 'customers' | 'subscriptions' = 'customers',
  ) =>
    createPostgresDestination({ url }).publish(
      await workplace.toPublication(resource, [records], { run, mode: 'incremental' }),
    )
  const typeOf = async (column: string) =>
    (
      await ask(`select format_type(atttypid, atttypmod) as type from pg_attribute
        where attrelid = 'billing.customers'::regclass and attname = '${column}'`)
    )?.[0]?.['type']

  test('leave the certificates of one run in a folder for each database', async () => {
    const publication = await workplace.toPublication('customers', [], { certificate: [] })
    const folders = [url, await postgres.createDatabase()].map(async (one) => {
      const { manifest } = await createPostgresDestination({ url: one }).publish(publication)
      return manifest.certificate?.folder
    })
    expect(new Set(await Promise.all(folders)).size).toBe(2)
  })

  test('keep every digit and letter of JSON, in its column or in _extra', async () => {
    const documents: [metadata: string, where: 'in its column' | 'in _extra'][] = [
      ['{"a":[1.50,12345678901234567.89],"b":"1e12345"}', 'in its column'],
      ['{"a":1e9999}', 'in its column'],
      [`{"a":${'7'.repeat(6_000)}}`, 'in its column'],
      [`{"a":"${'7'.repeat(20_000)}"}`, 'in its column'],
      ['{"\\\\":"\\"1e99999"}', 'in its column'],
      ['{"a":"\\\\u0000"}', 'in its column'],
      ['{"a":1e99999}', 'in _extra'],
      ['{"a":1e999999}', 'in _extra'],
      // 8 MB when written out.
      [`{"a":[${Array.from({ length: 800 }, () => '1e9999').join()}]}`, 'in _extra'],
      [`{"a":${'7'.repeat(6_001)}}`, 'in _extra'],
      ['{"a":"\\u0000"}', 'in _extra'],
      ['{"a\\u0000":1}', 'in _extra'],
      ['{"a":[{"b":"\\ud83d"}]}', 'in _extra'],
    ]
    await publish(
      'first',
      documents.map(([metadata], at) => `{"id":"${at}","metadata":${metadata}}`),
    )
    expect(await typeOf('metadata')).toBe('jsonb')
    const rows = await ask(
      `select metadata::text as text, _extra::text as extra from billing.live_customers order by id::integer`,
    )
    for (const [at, [metadata, where]] of documents.entries()) {
      const { text, extra } = rows?.[at] ?? {}
      if (where === 'in its column') expect(toPlainJson(text ?? '')).toBe(toPlainJson(metadata))
      else expect([text, extra]).toEqual([null, `{"metadata":${metadata}}`])
    }
  })

  test('have the columns of the record and of the run in order, without defaults', async () => {
    await publish('first', ['{"id":"a"}'])
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

  test('hold integers of 64 bits, and larger ones in _extra', async () => {
    const numbers = [
      '9223372036854775807',
      '-9223372036854775808',
      '9223372036854775808',
      '-9223372036854775809',
      '12345678901234567890',
    ]
    await publish(
      'first',
      numbers.map((number, at) => `{"id":"${at}","state":{"id":${number}}}`),
    )
    expect(await typeOf('state_id')).toBe('bigint')
    const rows = await ask(
      'select state_id::text as state, _extra::text as extra from billing.live_customers order by id',
    )
    expect(rows).toEqual(
      numbers.map((number, at) =>
        at < 2 ? { state: number, extra: null } : { state: null, extra: `{"state":{"id":${number}}}` },
      ),
    )
  })

  test('have comments, and an index on each id of another record', async () => {
    await publish('first', ['{"id":"1"}'], 'subscriptions')
    const comments = await ask(`select obj_description('billing.subscriptions'::regclass) as main,
      obj_description('billing.subscription_lines'::regclass) as child`)
    expect(comments).toEqual([
      {
        main: expect.stringContaining('live_subscriptions') as string,
        child: expect.stringContaining('Rows of subscriptions') as string,
      },
    ])
    const indexes = await ask(
      `select indexname from pg_indexes where schemaname = 'billing' and indexname not like '%pkey' order by 1`,
    )
    expect(indexes?.map(({ indexname }) => indexname)).toEqual(
      expect.arrayContaining(['subscriptions_customer', 'subscription_lines_plan']),
    )
    expect(indexes?.map(({ indexname }) => indexname)).not.toContain('subscriptions_document')
  })

  test('take an id of another record that is too long for an index, at first or later, without that index', async () => {
    const long = Array.from({ length: 150 }, (_, at) =>
      createHash('sha256').update(`${at}`).digest('hex'),
    ).join('')
    const subscription = (id: string, customer: string) =>
      JSON.stringify({ id, customer, lines: [{ plan: customer }] })
    const indexes = async () =>
      (
        await ask(
          `select indexname as name from pg_indexes where schemaname = 'billing' and indexdef like any (array['%(customer)', '%(plan)'])`,
        )
      )?.map(({ name }) => name)
    const longest = async () =>
      (await ask('select max(length(customer))::text as length from billing.subscriptions'))?.[0]?.['length']
    await publish('short', [subscription('1', 'cus_1')], 'subscriptions')
    expect(await indexes()).toEqual(['subscriptions_customer', 'subscription_lines_plan'])
    await publish('later', [subscription('2', long)], 'subscriptions')
    expect([await longest(), await indexes()]).toEqual([`${long.length}`, []])
    await ask('drop schema billing cascade')
    await publish('first', [subscription('1', long)], 'subscriptions')
    expect([await longest(), await indexes()]).toEqual([`${long.length}`, []])
    await publish('next', [subscription('1', long), subscription('2', long)], 'subscriptions')
    expect(await ask('select count(*)::text as rows from billing.subscription_lines')).toEqual([
      { rows: '2' },
    ])
  })

  // Together, because a user costs two publications. Only one time zone can be set.
  test.each<[zone: string, settings: string[]]>([
    [
      'America/Santiago',
      [
        'quote_all_identifiers = on',
        'search_path = nowhere',
        "datestyle = 'German, DMY'",
        'idle_in_transaction_session_timeout = 10',
        'default_transaction_isolation = serializable',
        'client_encoding = latin1',
        'work_mem = 64',
      ],
    ],
    [
      'Asia/Kathmandu',
      [
        'transform_null_equals = on',
        'intervalstyle = iso_8601',
        'lock_timeout = 1',
        'default_transaction_deferrable = on',
        'extra_float_digits = -15',
        'xmloption = document',
        'client_min_messages = debug1',
      ],
    ],
    [
      '<-12>12',
      [
        'standard_conforming_strings = off',
        'bytea_output = escape',
        'row_security = off',
        "lc_numeric = 'C'",
        'enable_hashjoin = off',
        'check_function_bodies = off',
      ],
    ],
  ])('are the same for a user in %s with other settings than usual', async (zone, settings) => {
    await ask(`create role odd login superuser password 'odd'`)
    for (const setting of [`timezone = '${zone}'`, ...settings]) await ask(`alter role odd set ${setting}`)
    try {
      const database = new URL(url).pathname.slice(1)
      const destination = createPostgresDestination({ url: postgres.toUrl(database, 'odd', 'odd') })
      const name = `Ñandú \\ 'x'`
      const records = [
        JSON.stringify({ id: '1', name }).replace(
          '}',
          ',"created":"2026-03-25T23:30:00.5-03:00","metadata":{"a":1.50}}',
        ),
      ]
      for (const run of ['first', 'second'])
        await destination.publish(await workplace.toPublication('customers', [records], { run }))
      expect(
        await ask(`select name, created_as_sent as text, metadata::text as json, _run_id as run,
          case when created = timestamptz '2026-03-26 02:30:00.5+00' then 'yes' end as is from billing.live_customers`),
      ).toEqual([
        {
          name,
          text: '2026-03-25T23:30:00.5-03:00',
          json: '{"a": 1.50}',
          run: 'second',
          is: 'yes',
        },
      ])
      const scope = await workplace.toPublication('customers', [records], { run: 'third' })
      expect(await destination.coveredThrough?.(scope, scope)).toEqual(expect.any(Number))
    } finally {
      await ask('drop owned by odd cascade; drop role odd')
    }
  })

  test('replace their rows in place, so that they are no larger after another export of the whole list', async () => {
    const list = (night: number) =>
      Array.from({ length: 500 }, (_, at) =>
        JSON.stringify({ id: `c${at}`, name: `night ${night}`, contacts: [{ id: 'a' }, { id: 'b' }] }),
      )
    const sizes = () =>
      ask(`select pg_indexes_size('billing.customers') || ' ' || pg_relation_size('billing.customers') as main,
        pg_indexes_size('billing.customer_contacts') || ' ' || pg_relation_size('billing.customer_contacts') as contacts`)
    await publish('night 1', list(1))
    const first = await sizes()
    for (const night of [2, 3, 4]) await publish(`night ${night}`, list(night))
    expect(await ask('select distinct name, _run_id as run from billing.customers')).toEqual([
      { name: 'night 4', run: 'night 4' },
    ])
    expect(await sizes()).toEqual(first)
  })

  const areWaiting = (count: number) =>
    vi.waitFor(
      async () =>
        expect(
          await ask(`select count(*) as n from pg_stat_activity where wait_event_type = 'Lock'`),
        ).toEqual([{ n: `${count}` }]),
      10_000,
    )

  test('are compared with a run that is there already when nobody is changing them', async () => {
    const first = await workplace.toPublication('customers', [['{"id":"a"}']], { run: 'first' })
    const warehouse = createPostgresDestination({ url })
    await warehouse.publish(first)
    const writer = new Client({ connectionString: url })
    await writer.connect()
    await writer.query('begin; delete from billing.customers')
    const again = warehouse.publish(first).catch((error: unknown) => error)
    await areWaiting(1)
    await writer.query('commit')
    expect(await again).toMatchObject({ name: 'AlreadyPublishedError' })
    await writer.end()
  })

  test('count a delete once when two publications at once are allowed to mark what was held back', async () => {
    const list = Array.from({ length: 12 }, (_, at) => `{"id":"c${at}","created":"2026-01-01T00:00:00Z"}`)
    const warehouse = createPostgresDestination({ url })
    await warehouse.publish(await workplace.toPublication('customers', [list], { run: 'first' }))
    const startedAt = '2026-03-02T03:00:00.000Z'
    const second = await workplace.toPublication('customers', [], {
      run: 'second',
      facts: { ...facts, startedAt, completeThrough: startedAt },
    })
    expect((await warehouse.publish(second)).manifest.deletes).toMatchObject({ marked: 0, heldBack: 12 })
    const holder = new Client({ connectionString: url })
    await holder.connect()
    await holder.query(`begin; select pg_advisory_xact_lock(hashtextextended('connector billing', 0))`)
    const both = [1, 2].map(() => warehouse.publish({ ...second, maxDeletes: 'all' }))
    await areWaiting(2)
    await holder.query('commit')
    await holder.end()
    for (const { manifest } of await Promise.all(both))
      expect(manifest.deletes).toMatchObject({ marked: 12, heldBack: 0 })
    expect(await ask(`select deleted::text from billing._exports where run = 'second'`)).toEqual([
      { deleted: '12' },
    ])
  })

  test.each(['statement_timeout', 'transaction_timeout'])(
    'wait for others longer than the %s of their user',
    async (timeout) => {
      await publish('first', ['{"id":"a"}'])
      await ask(`create role hasty login superuser password 'hasty'; alter role hasty set ${timeout} = 250`)
      onTestFinished(async () => {
        await ask('drop role hasty')
      })
      const writer = new Client({ connectionString: url })
      await writer.connect()
      await writer.query(`begin; update billing.customers set name = name`)
      const hasty = postgres.toUrl(new URL(url).pathname.slice(1), 'hasty', 'hasty')
      const second = await workplace.toPublication('customers', [['{"id":"b"}']], {
        run: 'second',
        mode: 'incremental',
      })
      const publishing = createPostgresDestination({ url: hasty }).publish(second)
      await vi.waitFor(
        async () =>
          expect(
            await ask(`select count(*) as n from pg_stat_activity where usename = 'hasty'
            and wait_event_type = 'Lock' and clock_timestamp() - query_start > interval '0.5 s'`),
          ).toEqual([{ n: '1' }]),
        10_000,
      )
      await writer.query('rollback')
      await writer.end()
      expect(await publishing).toMatchObject({ fresh: true })
    },
  )

  test('notice what somebody removes while an export is published', async () => {
    const list = ['{"id":"a"}', '{"id":"b"}']
    const first = await workplace.toPublication('customers', [list], { run: 'first' })
    const warehouse = createPostgresDestination({ url })
    await warehouse.publish(first)
    const [writer, remover] = [new Client({ connectionString: url }), new Client({ connectionString: url })]
    for (const client of [writer, remover]) await client.connect()
    await writer.query(`begin; update billing.customers set name = name where id = 'b'`)
    const publishing = publish('second', ['{"id":"b"}'])
    await areWaiting(1)
    // It waits before it counts what there is: so do others, until it has told what it leaves.
    const removing = remover.query(`delete from billing.customers where id = 'a'`)
    await areWaiting(2)
    await writer.query('rollback')
    await Promise.all([publishing, removing])
    for (const client of [writer, remover]) await client.end()
    expect(await warehouse.coveredThrough(first, first)).toBeUndefined()
  })

  describe('that somebody has put a trigger, a rule or a policy on', () => {
    const list = ['a', 'b'].map(
      (id) => `{"id":"${id}","created":"2026-01-01T00:00:00Z","contacts":[{"id":"of ${id}"}]}`,
    )
    const without = list.map((record) => record.replace(/"contacts.*/, '"contacts":[]}'))
    const read = (day: number, records: string[]) => {
      const startedAt = `2026-03-0${day}T03:00:00.000Z`
      return workplace.toPublication('customers', [records], {
        run: `day ${day}`,
        facts: { ...facts, startedAt, completeThrough: startedAt },
      })
    }
    const there = () =>
      ask(`select id, _run_id as run, coalesce(_deleted_at::text, 'there') as state from billing.customers
        order by id`)
    const asBefore = ['a', 'b'].map((id) => ({ id, run: 'day 1', state: 'there' }))

    test.each([
      ['insert', 'customers', `new.id = 'c'`, [...list, '{"id":"c"}']],
      ['update', 'customers', `new.id = 'b' and new._deleted_at is null`, list],
      ['update', 'customers', 'new._deleted_at is not null', list.slice(0, 1)],
      ['update', 'customer_contacts', 'new._deleted_at is not null', list.slice(0, 1)],
      ['delete', 'customer_contacts', `old.id = 'of b'`, without],
    ])('take no export where it keeps a row from an %s of %s (%s)', async (event, table, when, records) => {
      const warehouse = createPostgresDestination({ url })
      await warehouse.publish(await read(1, list))
      await ask(`create function keep_out() returns trigger language plpgsql as 'begin return null; end';
        create trigger keep_out before ${event} on billing.${table} for each row when (${when})
          execute function keep_out()`)
      await expect(warehouse.publish(await read(2, records))).rejects.toMatchObject({
        name: 'ChangedTableError',
        message: expect.stringMatching(
          new RegExp(`^A rule that someone put on ${table} of schema billing .* keeps`),
        ),
      })
      expect(await there()).toEqual(asBefore)
    })

    test.each([
      [
        'rule',
        'create rule kept as on delete to billing.customer_contacts do instead nothing',
        'A rule that',
      ],
      [
        'table that inherits from theirs',
        `create table billing.old () inherits (billing.customers);
          with moved as (delete from only billing.customers where id = 'a' returning *)
          insert into billing.old select * from moved`,
        'Someone let another table inherit from the table customers',
      ],
      [
        'view of a part of theirs',
        `alter table billing.customer_contacts rename to all_contacts;
          create view billing.customer_contacts as select * from billing.all_contacts where id <> 'x'`,
        'Someone put something else in the place of the table customer_contacts',
      ],
    ])('take no export, and mark nothing, where it is a %s', async (_what, sql, words) => {
      const warehouse = createPostgresDestination({ url })
      await warehouse.publish(await read(1, list))
      await ask(sql)
      await expect(warehouse.publish(await read(2, without))).rejects.toMatchObject({
        name: 'ChangedTableError',
        message: expect.stringContaining(words),
      })
      expect(await there()).toEqual(asBefore)
    })

    test('take no export where it hides rows from their owner', async () => {
      const database = new URL(url).pathname.slice(1)
      await ask(`create role keeper login password 'keeper'; grant create on database ${database} to keeper`)
      onTestFinished(async () => {
        await ask('drop owned by keeper; drop role keeper')
      })
      const warehouse = createPostgresDestination({ url: postgres.toUrl(database, 'keeper', 'keeper') })
      await warehouse.publish(await read(1, list))
      await ask(`alter table billing.customers enable row level security, force row level security;
        create policy not_b on billing.customers using (id <> 'b')`)
      await expect(warehouse.publish(await read(2, list.slice(0, 1)))).rejects.toMatchObject({
        name: 'WarehouseRefusedError',
        message: expect.stringContaining('affected by row-level security policy for table "customers"'),
      })
      expect(await there()).toEqual(asBefore)
    })
  })

  test('refuse a record that came twice, also if an earlier table has the name of their key', async () => {
    await publish('first', ['{"id":"1"}'])
    await ask('drop view billing.live_customers; alter table billing.customers rename to customers_before')
    await expect(publish('twice', ['{"id":"1"}', '{"id":"1"}'])).rejects.toMatchObject({
      name: 'PartsDamagedError',
    })
  })

  test('refuse a row of a record that came twice', async () => {
    await publish('first', ['{"id":"1","contacts":[{"id":"a"}]}'])
    const publication = await workplace.toPublication('customers', [['{"id":"1","contacts":[{"id":"b"}]}']], {
      run: 'twice',
      mode: 'incremental',
    })
    const again = publication.parts.filter(({ table }) => table === 'customer_contacts')
    await expect(
      createPostgresDestination({ url }).publish({ ...publication, parts: [...publication.parts, ...again] }),
    ).rejects.toMatchObject({ name: 'PartsDamagedError' })
    expect(await ask('select id from billing.customer_contacts')).toEqual([{ id: 'a' }])
  })

  test('keep rights on a live view, and views of others on it, when they get a column', async () => {
    const [main, ...children] = (await workplace.toPublication('customers', [])).tables
    const columns = main!.columns.filter(({ name }) => name !== 'website')
    await createPostgresDestination({ url }).publish({
      ...(await workplace.toPublication('customers', [], { run: 'first', mode: 'incremental' })),
      tables: [{ ...main!, columns }, ...children],
    })
    const role = `reader_${process.pid}`
    await ask(
      `create role ${role}; grant usage on schema billing to ${role}; grant select on billing.live_customers to ${role}`,
    )
    onTestFinished(async () => {
      await ask(`drop owned by ${role}; drop role ${role}`)
    })
    await ask('create schema marts; create view marts.states as select state_id from billing.live_customers')
    await publish('second', ['{"id":"2","state":{"id":7},"website":"w"}'])
    expect(
      await ask(`set role ${role}; select count(*)::text as rows from billing.live_customers`),
    ).toBeDefined()
    expect(
      await ask(`select has_table_privilege('${role}', 'billing.live_customers', 'select')::text as may`),
    ).toEqual([{ may: 'true' }])
    expect(await ask('select website from billing.live_customers')).toEqual([{ website: 'w' }])
    expect(await ask('select state_id::text as state from marts.states')).toEqual([{ state: '7' }])
  })
})
