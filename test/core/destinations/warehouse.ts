import { Big } from 'big.js'
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import type { Publication } from '../../../core/destinations/destination.ts'
import { verifyWarehouse } from '../../../core/destinations/files/verify.ts'
import { readManifest } from '../../../core/destinations/manifest.ts'
import { writePart } from '../exports/write-part.ts'
import type { SeenRow } from './contract.ts'
import type { Workplace } from './publication.ts'
import { day, readOn, useWarehouse, type WarehouseHarness } from './use-warehouse.ts'

/** What every warehouse promises beside what every destination does and `describeGone` shows. */
export function describeWarehouse(
  name: string,
  open: (workplace: Workplace) => Promise<WarehouseHarness>,
): void {
  describe(`the ${name} warehouse`, () => {
    const {
      harness,
      workplace,
      toPublication,
      publish,
      once,
      publishFirst,
      ask,
      drop,
      customers,
      states,
      contacts,
      many,
    } = useWarehouse(open)

    describe('merging', () => {
      test('says of every row which run wrote it and when the read began', async () => {
        await publish('first', [{ id: 'a', contacts: [{ id: 'con' }] }], { facts: readOn(1) })
        for (const table of ['customers', 'customer_contacts'])
          expect(
            await ask(`select _run_id, _deleted_at, case when _read_at = timestamptz '${day(1)}' then 'yes' end as at
              from ${harness.schema}.${table}`),
          ).toEqual([{ _run_id: 'first', _deleted_at: null, at: 'yes' }])
      })

      test('keeps the instant of a timestamp to the microsecond beside its text', async () => {
        await publish('first', [{ id: 'a', created: '2020-10-15T13:26:15.356289-03:00' }])
        expect(
          await ask(`select created_as_sent as text, case when created = timestamptz '2020-10-15 16:26:15.356289+00'
            then 'yes' end as instant from ${harness.schema}.customers`),
        ).toEqual([{ text: '2020-10-15T13:26:15.356289-03:00', instant: 'yes' }])
      })

      test('cuts the finer digits of a time instead of rounding them into the next day', async () => {
        const times = [
          ['2026-03-25T23:59:59.9999999-03:00', '2026-03-26 02:59:59.999999+00'],
          ['1960-12-31T23:59:59.999999999Z', '1960-12-31 23:59:59.999999+00'],
          ['9999-12-31T23:59:59.999999999Z', '9999-12-31 23:59:59.999999+00'],
        ] as const
        for (const run of [1, 2]) {
          const list = times.map(([text], at) => ({ id: `${at}`, created: text }))
          await publish(`${run}`, list, { facts: readOn(run) })
          const isThere = times.map(
            ([, instant], at) => `id = '${at}' and created = timestamptz '${instant}'`,
          )
          expect(
            await ask(`select created_as_sent as text, case when ${isThere.join(' or ')} then 'yes' end as is
              from ${harness.schema}.customers order by id`),
          ).toEqual(times.map(([text]) => ({ text, is: 'yes' })))
        }
      })

      const newer = {
        id: 'a',
        name: 'newer',
        updated: '2026-02-02T00:00:00.000002-03:00',
        contacts: [{ id: 'x' }],
      }
      // One microsecond and five hours: as texts the older one comes last.
      const older = { id: 'a', name: 'older', updated: '2026-02-02T08:00:00.000001+05:00', contacts: [] }

      test('never lets an older record of a stale replica overwrite a newer one', async () => {
        await publish('newer', [newer], { facts: readOn(1), mode: 'incremental' })
        await publish('older', [older], { facts: readOn(2), mode: 'incremental' })
        expect((await customers()).map((row) => row['name'])).toEqual(['newer'])
        expect(await contacts()).toEqual(['a.1 x'])
      })

      test('replaces children with their parent', async () => {
        await publish('first', [
          { id: 'a', contacts: [{ id: '1' }, { id: '2' }] },
          { id: 'b', contacts: [{ id: '3' }] },
        ])
        await publish('second', [{ id: 'a', contacts: [{ id: '4' }] }], {
          facts: readOn(2),
          mode: 'incremental',
        })
        expect(await contacts()).toEqual(['a.1 4', 'b.1 3'])
        await publish('third', [{ id: 'a', contacts: [{ id: '5' }, { id: '4' }] }], {
          facts: readOn(3),
          mode: 'incremental',
        })
        expect(await contacts()).toEqual(['a.1 5', 'a.2 4', 'b.1 3'])
      })

      test('replaces children whose parents someone dropped with their table', async () => {
        await publish('first', [{ id: 'a', contacts: [{ id: '1' }] }])
        await drop('customers')
        await publish('second', [{ id: 'a', contacts: [{ id: '2' }] }], { facts: readOn(2) })
        expect(await contacts()).toEqual(['a.1 2'])
      })

      test('refuses parts that hold a record twice, also where only its children have a table', async () => {
        await publishFirst([{ id: 'a', contacts: [{ id: '1' }] }])
        await drop('customers')
        const record = { id: 'a', contacts: [{ id: '2' }] }
        await expect(publish('twice', [record, record], { facts: readOn(2) })).rejects.toMatchObject({
          name: 'PartsDamagedError',
        })
        expect(await contacts()).toEqual(['a.1 1'])
      })

      test('refuses parts that hold a record twice', async () => {
        const twice = () => publish('twice', [{ id: 'b' }, { id: 'b' }], { facts: readOn(2) })
        await expect(twice()).rejects.toMatchObject({ name: 'PartsDamagedError' })
        await publish('first', [{ id: 'a' }])
        await expect(twice()).rejects.toMatchObject({ name: 'PartsDamagedError' })
        expect(await states()).toEqual(['a there'])
      })

      test('keeps one of two records with one id over what is there, and nothing of the children of either', async () => {
        await publishFirst([
          { id: 'a', contacts: [{ id: '1' }] },
          { id: 'b', contacts: [{ id: '2' }] },
        ])
        const twice = [
          { id: 'a', name: 'older', updated: day(2), contacts: [{ id: '3' }] },
          { id: 'b', name: 'b', updated: day(2), contacts: [{ id: '4' }] },
          { id: 'a', name: 'newest', updated: day(3) },
        ]
        const on = { ...readOn(2), verdict: 'unproven' as const, repeatedIds: ['a'] }
        const { manifest } = await publish('twice', twice, { facts: on })
        expect(await states()).toEqual(['a there', 'b there'])
        expect((await customers()).map((row) => row['name'])).toEqual(['newest', 'b'])
        expect(await contacts()).toEqual(['b.1 4'])
        expect(manifest.tables).toMatchObject([{ rows: 2 }, { rows: 1 }])
        // The next read finds one record under the id again.
        await publish('next', [{ id: 'a', updated: day(4), contacts: [{ id: '5' }] }], { facts: readOn(4) })
        expect(await contacts()).toEqual(['a.1 5', 'b.1 4'])
      })

      /** What a worker of an earlier version publishes of Ana: neither the column of her name nor its cell. */
      const withoutName = async (run: string, more: Partial<Publication>): Promise<Publication> => {
        const publication = await toPublication(run, [{ id: 'a', name: 'Ana' }], more)
        const [part, ...parts] = publication.parts
        const text = (await readFile(part!.path, 'utf8')).replace('a,Ana,', 'a,')
        const [main, ...children] = publication.tables
        const columns = main!.columns.filter((column) => column.name !== 'name')
        return {
          ...publication,
          tables: [{ ...main!, columns }, ...children],
          parts: [await writePart({ ...part!, text }), ...parts],
        }
      }

      test('empties a column that a later run does not know', async () => {
        await publish('first', [{ id: 'a', name: 'Ana' }])
        await harness.destination.publish(await withoutName('second', { facts: readOn(2) }))
        expect(await customers()).toMatchObject([{ id: 'a', name: null, run: 'second' }])
      })

      test('adds a column that the connector has learned to a table and its view, and keeps their rows', async () => {
        await harness.destination.publish(await withoutName('first', { facts: readOn(1) }))
        await publish('second', [{ id: 'b', name: 'Eva' }], { facts: readOn(2), mode: 'incremental' })
        for (const table of ['customers', 'live_customers'])
          expect(await ask(`select id, name from ${harness.schema}.${table} order by id`)).toEqual([
            { id: 'a', name: null },
            { id: 'b', name: 'Eva' },
          ])
      })

      test('keeps the lines of entries that are not records', async () => {
        const publication = await workplace.toPublication('customers', [
          ['{"id":"a"}', '"x\u2028y"', '{"name":"no id"}'],
        ])
        const { manifest } = await harness.destination.publish(publication)
        expect(manifest.rejected.rows).toBe(2)
        const lines = await ask(`select line from ${harness.schema}._rejected order by line`)
        expect(lines.map(({ line }) => JSON.parse(line ?? '') as unknown)).toEqual([
          { reason: 'the record has no id', record: { name: 'no id' } },
          { reason: 'the record is not an object', record: 'x\u2028y' },
        ])
      })
    })

    describe('tables that change', () => {
      test('say of every column what it is', async () => {
        await publishFirst([{ id: 'a' }])
        expect(
          await ask(`select kind, note from ${harness.schema}._columns
            where table_name = 'customers' and column_name = 'country_code'`),
        ).toEqual([{ kind: 'text', note: 'customers.country.code: telephone prefix' }])
      })

      test.each([
        [
          'added a column to',
          'alter table customers add column mine varchar',
          /added a column to .*customers.*: mine\./,
        ],
        [
          'changed the type of a column of',
          'alter table customers alter column send_invoices type date using null',
          /send_invoices of .* is date, and has to be boolean/i,
        ],
        [
          'let no run leave empty a column of',
          'alter table customers alter column name set not null',
          /(a|A) rule/,
        ],
      ])(
        'are refused with a sentence, and left as they are, where someone %s them',
        async (_title, sql, words) => {
          await publishFirst([{ id: 'a', name: 'Ana' }])
          await harness.ask(`drop view ${harness.schema}.live_customers`)
          await harness.ask(sql.replace('table customers', `table ${harness.schema}.customers`))
          await expect(publish('second', [{ id: 'b' }], { facts: readOn(2) })).rejects.toMatchObject({
            name: 'ChangedTableError',
            message: expect.stringMatching(words),
          })
          expect(await states()).toEqual(['a there'])
          expect(await ask(`select run from ${harness.schema}._exports`)).toEqual([{ run: 'first' }])
        },
      )

      test.each([
        ['table', 'customers'],
        ['view', 'live_customers'],
      ])("are not made where a %s of theirs is someone else's, which is left alone", async (_what, table) => {
        if (harness.schema !== 'main') await harness.ask(`create schema ${harness.schema}`)
        await harness.ask(`create table ${harness.schema}.${table} (id integer, note varchar)`)
        await expect(publish('first', [{ id: 'a' }])).rejects.toMatchObject({
          name: 'ChangedTableError',
          message: expect.stringMatching(
            new RegExp(
              `${table}.*did not make.* or ${harness.schema === 'main' ? 'move' : 'name another schema \\(--input schema='}`,
            ),
          ),
        })
        expect(await ask(`select * from ${harness.schema}.${table}`)).toEqual([])
        expect(await harness.ask(`select * from ${harness.schema}._exports`)).toBeUndefined()
      })

      /** The value of a column, or what stands for it in `_extra`, under the names of the record or the column. */
      const numberIn = (column: string) => {
        const [outer, inner] = column.split('_')
        return `coalesce(cast(${column} as varchar), (_extra -> '${outer}') ->> '${inner}', (_extra -> '_misfits') ->> '${column}')`
      }
      const typesOf = () =>
        ask(`select table_name, column_name, data_type from information_schema.columns
          where table_schema = '${harness.schema}' order by 1, 2`)

      test('keep their types and every digit, whatever numbers come', async () => {
        const record = (id: string, number: string) =>
          `{"id":"${id}","nick":0.10,"state":{"id":${number}},"aggregations":{"sales":${number}},"updated":"${day(1)}"}`
        const numbers = ['7', '12345678901234567890', '12345678901234567890'.repeat(3), '0']
        const seen: SeenRow[][] = []
        for (const [at, number] of numbers.entries()) {
          await harness.destination.publish(
            await workplace.toPublication('customers', [[record(`${at}`, number)]], {
              run: `${at}`,
              mode: 'incremental',
              facts: readOn(at + 1),
            }),
          )
          seen.push(await typesOf())
        }
        expect(seen.slice(1)).toEqual(seen.slice(1).map(() => seen[0]))
        for (const table of ['customers', 'live_customers']) {
          const rows = await ask(`select ${numberIn('state_id')} as state,
            ${numberIn('aggregations_sales')} as sales from ${harness.schema}.${table} order by id`)
          expect(rows.map(({ state }) => state)).toEqual(numbers)
          expect(rows.map(({ sales }) => sales!.replace(/\.0+$/, ''))).toEqual(numbers)
        }
      })

      test('take sums and products of amounts without an overflow', async () => {
        const amounts = ['9999999999999999', '29000', '0.00000001', '1.19']
        const records = amounts.map((amount, at) => `{"id":"${at}","aggregations":{"sales":${amount}}}`)
        await harness.destination.publish(
          await workplace.toPublication('customers', [records], { run: 'first', facts: readOn(1) }),
        )
        const [row = {}] = await ask(`select cast(sum(aggregations_sales) as varchar) as sum,
            cast(sum(aggregations_sales * 1.19) as varchar) as products,
            cast(max(case when id = '1' then aggregations_sales end) * max(case when id = '3' then aggregations_sales end)
              as varchar) as product
          from ${harness.schema}.customers`)
        expect(Object.values(row).map((value) => new Big(value!).toFixed())).toEqual([
          '10000000000029000.19000001',
          new Big('10000000000029000.19000001').times('1.19').toFixed(),
          '34510',
        ])
      })
    })

    describe('the views of live records', () => {
      const idsIn = async (table: string) =>
        (await ask(`select id from ${harness.schema}.${table} order by id`)).map(({ id }) => id)

      test('leave out the records that are gone, and their child rows', async () => {
        const all = many(20).map((customer) => ({ ...customer, contacts: [{ id: `of ${customer.id}` }] }))
        await publish('first', all, { facts: readOn(1) })
        await publish('second', all.slice(2), { facts: readOn(2) })
        expect(await idsIn('customers')).toHaveLength(20)
        expect(await idsIn('live_customers')).toEqual(all.slice(2).map(({ id }) => id))
        expect(await idsIn('live_customer_contacts')).toEqual(all.slice(2).map(({ id }) => `of ${id}`))
        await expect(harness.ask(`select _deleted_at from ${harness.schema}.live_customers`)).rejects.toThrow(
          '_deleted_at',
        )
      })
    })

    describe('held against an export', () => {
      const records = [
        // A byte order mark, as a sheet's first cell brings it, where a file begins.
        {
          id: '\ufeffb',
          name: '',
          email: '\ufeff\ufeffb',
          created: '1969-12-31T23:59:59.9999999Z',
          contacts: [{ id: '3' }],
        },
        {
          id: 'a',
          name: 'Ana',
          created: '2020-10-15T13:26:15.356289-03:00',
          aggregations: { sales: 1500.5, balance: -0.1 },
          metadata: { b: [1, null], a: '' },
          contacts: [{ id: '1', phone: '007' }, { id: '2' }],
        },
      ]
      const exported = async (more: Partial<Publication> = {}) => {
        const publication = await workplace.toPublication(
          'customers',
          [records.map((one) => JSON.stringify(one))],
          { run: 'first', facts: readOn(2), ...more },
        )
        await once(`exported ${more.mode}`, () => harness.destination.publish(publication))
        return (await createCsvDestination().publish(publication)).location
      }
      const verify = async (folder: string) => {
        const manifest = (await readManifest(folder))!
        return verifyWarehouse({ destination: harness.destination, manifest, folder })
      }

      test('holds the same, however numbers are written', async () => {
        expect(await verify(await exported())).toMatchObject({
          problems: [],
          tables: [
            { name: 'customers', compared: 2, newer: 0 },
            { name: 'customer_contacts', compared: 3, newer: 0 },
          ],
        })
      })

      test.each([
        ["update customers set name = '' where id = 'a'", /^customers(\.name)? does not hold/],
        ["update customers set name = null where name = ''", /^customers(\.name)? does not hold/],
        [
          "update customers set aggregations_sales = 1500.51 where id = 'a'",
          /^customers(\.aggregations_sales)? does not/,
        ],
        [
          "update customers set created = created + interval '1 microsecond' where id = 'a'",
          /^customers(\.created \(instant\))? does not hold/,
        ],
        [
          "update customer_contacts set phone = '7' where id = '1'",
          /^customer_contacts(\.phone)? does not hold/,
        ],
        [
          `update customer_contacts set _deleted_at = timestamptz '${day(2)}' where id = '1'`,
          /^customer_contacts does not hold what was exported in _deleted_at of 1 row: a,1\.$/,
        ],
        [
          "insert into customer_contacts (customer_id, position, id) values ('a', 3, 'theirs')",
          /^customer_contacts has 1 row under this run that the export lacks: a,3\.$/,
        ],
        ["delete from customers where name = ''", /^customers lacks 1 row of the export: \ufeffb\./],
        ["delete from customer_contacts where customer_id = 'a'", /lacks 2 rows of the export: a,1; a,2\./],
        ["insert into customers (id, _run_id) values ('c', 'first')", /^customers has 1 row under this run/],
        [
          `insert into customers (id, _run_id, _read_at, created) values ('c', 'old', timestamptz '${day(1)}', timestamptz '${day(1)}')`,
          /^customers has records that the export lacks and that are not marked as deleted: c\./,
        ],
      ])('is found to differ after %s', async (sql, words) => {
        const folder = await exported()
        await harness.ask(sql.replace(/(customers|customer_contacts|_warehouse) /, `${harness.schema}.$1 `))
        expect((await verify(folder)).problems).toEqual([expect.stringMatching(words)])
      })

      test('may have records that a later export marked as deleted, and none that only somebody marked', async () => {
        const folder = await exported()
        await publish('second', records.slice(0, 1), { facts: readOn(3) })
        expect(await states()).toContain('a gone')
        expect((await verify(folder)).problems).toEqual([])
        const mark = async (table: string, at: string) =>
          harness.ask(
            `update ${harness.schema}.${table} set _deleted_at = ${at} where _deleted_at is not null`,
          )
        await mark('customer_contacts', 'null')
        const others = 'customer_contacts does not hold what was exported in _deleted_at of 2 rows: a,1; a,2.'
        expect((await verify(folder)).problems).toEqual([others])
        await mark('customers', `timestamptz '${day(4)}'`)
        expect((await verify(folder)).problems).toEqual([
          'customers does not hold what was exported in _deleted_at of 1 row: a.',
          others,
        ])
      })

      test('has one of the records of one id, which is not held against it', async () => {
        const publication = await toPublication(
          'twice',
          [{ id: 'a', contacts: [{ id: '1' }] }, { id: 'a', name: 'newest', updated: day(1) }, { id: 'b' }],
          { facts: readOn(2, { verdict: 'unproven', reasons: ['x'], repeatedIds: ['a'] }) },
        )
        await harness.destination.publish(publication)
        const { location } = await createCsvDestination().publish(publication)
        expect((await verify(location)).problems).toEqual([])
        await harness.ask(`update ${harness.schema}.customers set name = 'changed'`)
        expect((await verify(location)).problems).toEqual([expect.stringMatching(/name of 1 row: b\.$/)])
      })

      test('may have newer states of the same records', async () => {
        const folder = await exported()
        await publish('second', [{ id: 'a', updated: day(3) }], { facts: readOn(3), mode: 'incremental' })
        expect(await verify(folder)).toMatchObject({
          problems: [],
          tables: [
            { compared: 1, newer: 1 },
            { compared: 1, newer: 0 },
          ],
        })
      })

      test.each([
        [
          'one record of an incremental',
          'incremental',
          `id in ('a', '1', '2')`,
          [
            'customers lacks 1 row of the export: a.',
            'customer_contacts lacks 2 rows of the export: a,1; a,2.',
          ],
        ],
        // It is not told to lack a mark on a record that the export has.
        [
          'all records of a full',
          'full',
          'true',
          [
            'customers lacks 2 rows of the export: a; \ufeffb.',
            'customer_contacts lacks 3 rows of the export: a,1; a,2; \ufeffb,1.',
          ],
        ],
      ] as const)(
        'lacks %s export, of which it has the state of an older run',
        async (_, mode, where, words) => {
          const folder = await exported({ mode })
          for (const table of ['customers', 'customer_contacts'])
            await harness.ask(`update ${harness.schema}.${table} set _run_id = 'old', _read_at = timestamptz '${day(1)}'
            where ${where}`)
          expect((await verify(folder)).problems).toEqual(words)
        },
      )

      test('is not made where it is not there', async () => {
        const { location } = await createCsvDestination().publish(await toPublication('first', []))
        const said = await verify(location).then(
          ({ problems }) => problems.join(' '),
          (error: unknown) => String(error),
        )
        expect(said).toMatch(/There is no warehouse|has no table _warehouse/)
        expect(await harness.ask(`select * from ${harness.schema}._warehouse`)).toBeUndefined()
      })
    })

    test.each([
      ['new', []],
      ['full', [{ id: 'a' }]],
    ])(
      'takes publications at once one after the other, and none after a later read: %s',
      async (_, before) => {
        if (before.length > 0) await publish('before', before, { facts: readOn(1) })
        const runs = await Promise.allSettled(
          [2, 3, 4].map((date) =>
            publish(`run ${date}`, [{ id: 'a', name: `day ${date}` }, { id: `b${date}` }], {
              facts: readOn(date),
              mode: 'incremental',
            }),
          ),
        )
        const published = [2, 3, 4].filter((_, index) => runs[index]!.status === 'fulfilled')
        expect(published.at(-1)).toBe(4)
        for (const run of runs)
          if (run.status === 'rejected') expect(run.reason).toMatchObject({ name: 'NotAdmittedError' })
        expect(await customers()).toMatchObject([
          { id: 'a', name: 'day 4' },
          ...published.map((date) => ({ id: `b${date}` })),
        ])
      },
    )

    test('takes the same publication at once only once', async () => {
      const publication = await toPublication('run', [{ id: 'a' }])
      const both = await Promise.all([1, 2].map(() => harness.destination.publish(publication)))
      expect(both.filter(({ fresh }) => fresh)).toHaveLength(1)
      expect(both[0]!.manifest).toEqual(both[1]!.manifest)
      expect(await states()).toEqual(['a there'])
    })
  })
}
