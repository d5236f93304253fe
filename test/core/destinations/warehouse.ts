import { Big } from 'big.js'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import type { Publication } from '../../../core/destinations/destination.ts'
import { verifyExport, verifyWarehouse } from '../../../core/destinations/files/verify.ts'
import { readManifest } from '../../../core/destinations/manifest.ts'
import { keepCertificate } from '../../../core/destinations/warehouse/certificate.ts'
import { writePart } from '../exports/write-part.ts'
import type { SeenRow } from './contract.ts'
import type { Workplace } from './publication.ts'
import { day, readOn, useWarehouse, type WarehouseHarness } from './use-warehouse.ts'

/** What every warehouse promises beside what every destination does and `describeDeletes` shows. */
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
      publishPlan,
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

      const withCertificate = async (text = '{"page":1}\n') => {
        const { folder } = await toPublication('x', [])
        await mkdir(folder, { recursive: true })
        const path = join(folder, 'certificate.part')
        return [await writePart({ table: 'certificate', path, text, rows: 1 })]
      }

      test('names the place and the checksum of the certificate, which claims what is true of the warehouse', async () => {
        const certificate = await withCertificate()
        const publication = await toPublication('changes', [{ id: 'a' }], {
          mode: 'incremental',
          facts: readOn(2, { changedSince: day(1) }),
          certificate,
        })
        const first = await harness.destination.publish(publication)
        const bytes = await readFile((await keepCertificate(publication, first.manifest))!, 'utf8')
        // As an attempt that died right after its commit is repeated.
        const { manifest } = await harness.destination.publish(publication)
        const place = (await keepCertificate(publication, manifest))!
        // The page of the run has its SHA-256.
        expect(await readFile(place, 'utf8')).toBe(bytes)
        const written = await readFile(join(dirname(place), 'certificate.jsonl'), 'utf8')
        expect(written.split('\n')).toEqual([
          expect.stringMatching(/^\{"certificate":1,.*"mode":"incremental"/),
          '{"page":1}',
          expect.stringMatching(/^\{"end":"unproven","reasons":\[".+"\],"completeThrough":null,/),
          '',
        ])
        const rows = await ask(`select cast(manifest as text) as manifest from ${harness.schema}._exports`)
        expect(JSON.parse(await readFile(place, 'utf8'))).toEqual(JSON.parse(String(rows[0]!['manifest'])))
        const sha256 = createHash('sha256').update(written).digest('hex')
        expect(manifest.certificate).toEqual({
          rows: 3,
          files: [{ path: 'certificate.jsonl', rows: 3, bytes: written.length, sha256 }],
          folder: relative(publication.folder, dirname(place)),
        })
      })

      test('lets an attempt write the certificate while an abandoned one still does', async () => {
        const certificate = await withCertificate(`${' '.repeat(30_000_000)}{"page":1}\n`)
        const publication = await toPublication('first', [{ id: 'a' }], { certificate })
        const { manifest } = await harness.destination.publish(publication)
        const abandoned = keepCertificate(publication, manifest)
        const beside = join(publication.folder, dirname(manifest.certificate!.folder!))
        await expect.poll(() => readdir(beside).catch(() => []), { interval: 1 }).toHaveLength(1)
        const [place] = await Promise.all([keepCertificate(publication, manifest), abandoned])
        expect(await verifyExport(dirname(place!))).toMatchObject({ problems: [] })
      })

      test('writes no other certificate over the one that it names', async () => {
        const certificate = await withCertificate()
        const publication = await toPublication('first', [{ id: 'a' }], { certificate })
        const { manifest } = await harness.destination.publish(publication)
        const place = (await keepCertificate(publication, manifest))!
        // Of the same rows, as those of another attempt to read them.
        const other = { ...publication, certificate: await withCertificate('{"page":2}\n') }
        const again = await harness.destination.publish(other)
        await expect(keepCertificate(other, again.manifest)).rejects.toMatchObject({
          name: 'AlreadyPublishedError',
        })
        expect(await verifyExport(dirname(place))).toMatchObject({ problems: [] })
      })

      test('says of a certificate that it cannot write that the rows are there', async () => {
        const certificate = await withCertificate()
        const publication = await toPublication('first', [{ id: 'a' }], { certificate })
        const { manifest } = await harness.destination.publish(publication)
        await writeFile(join(publication.folder, manifest.destination), 'a file in the way')
        await expect(keepCertificate(publication, manifest)).rejects.toMatchObject({
          name: 'UnwritableError',
          message: expect.stringMatching(/The rows are in the warehouse, .* run it again\.$/),
        })
      })

      test.each<[string, () => Promise<unknown>, string[]?]>([
        [
          'tables someone dropped and another run made again',
          async () => {
            await drop('customers', 'customer_contacts')
            await publish('changes', [{ id: 'c' }], { facts: readOn(2), mode: 'incremental' })
          },
          ['a there', 'b there', 'c there'],
        ],
        [
          'rows someone removed',
          () => ask(`delete from ${harness.schema}.customers`),
          ['a there', 'b there'],
        ],
        [
          'rejected entries someone dropped with their table',
          () => ask(`drop table ${harness.schema}._rejected`),
        ],
      ])('never says that a run is published whose %s', async (_title, damage, restored) => {
        const publication = await workplace.toPublication(
          'customers',
          [['{"id":"a"}', '{"id":"b"}', '["no object"]']],
          { run: 'full', facts: readOn(1) },
        )
        await harness.destination.publish(publication)
        await damage()
        const again = await harness.destination.publish(publication).catch((error: unknown) => error)
        if (again instanceof Error) expect(again.name).toBe('AlreadyPublishedError')
        else expect(await states()).toEqual(restored)
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

      test('refuses a list before it is read while the newest read of it there is from the future', async () => {
        const read = await toPublication('first', [{ id: 'a' }], { facts: readOn(5) })
        const check = (now: string, of = read) =>
          harness.destination.checkBeforeRead(of, { reads: [of], now: Date.parse(now) })
        await harness.destination.publish(read)
        await expect(check(day(4))).rejects.toMatchObject({
          name: 'NotAdmittedError',
          message: expect.stringMatching(
            new RegExp(
              `^.* has a read of customers from the future: the run first .*${day(5)}.* Nothing was read`,
            ),
          ),
        })
        await check(day(6))
        // The clocks of two workers may differ by seconds.
        await check(new Date(Date.parse(day(5)) - 4_000).toISOString())
        await check(day(4), { ...read, resource: 'plans' })
      })

      test.each([
        ['full', {}],
        ['incremental', { mode: 'incremental' }],
        ['filtered', { filters: { status: 'active' } }],
        ['capped', { capped: true }],
        ['by id', { mode: 'byId' }],
      ] as [string, Partial<Publication>][])(
        'refuses a read that is older than the newest one of the resource there, with one sentence (%s)',
        async (_title, more) => {
          const first = await toPublication('first', [{ id: 'a' }, { id: 'b' }], { facts: readOn(1) })
          await once('a first and a third read', async () => {
            await harness.destination.publish(first)
            await publish('third', [{ id: 'a' }, { id: 'c' }], { facts: readOn(3) })
          })
          const before = await customers()
          await expect(publish('second', [{ id: 'b' }], { facts: readOn(2), ...more })).rejects.toMatchObject(
            {
              name: 'NotAdmittedError',
              message: expect.stringMatching(
                new RegExp(
                  `^.*later read of customers: the run third .*${day(3)}, and second at ${day(2)}.*Start a new export`,
                ),
              ),
            },
          )
          expect(await customers()).toEqual(before)
          expect(await ask(`select run from ${harness.schema}._exports order by run`)).toEqual([
            { run: 'first' },
            { run: 'third' },
          ])
          // What is there already stays published, and the order is that of one resource.
          expect(await harness.destination.publish(first)).toMatchObject({ fresh: false })
          expect(await publishPlan('plans', { facts: readOn(2) })).toMatchObject({ fresh: true })
        },
      )

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

      test('warns of records that it kept because they are newer, and counts their rows', async () => {
        await publish('new', [{ id: 'a', updated: day(2), contacts: [{ id: '1' }] }], { facts: readOn(2) })
        const stale = [{ id: 'a', contacts: [{ id: '1' }, { id: '2' }] }, { id: 'b' }]
        const { manifest } = await publish('stale', stale, { facts: readOn(3) })
        expect(manifest.tables).toMatchObject([
          { rows: 2, kept: 1 },
          { rows: 2, kept: 2 },
        ])
        expect(manifest.warnings).toEqual([
          'Kept as before, because the service has an older `updated`: 1 customer. If it was restored from a backup, export to a new schema or file.',
        ])
      })

      test('counts new and changed records, and not those that it replaces as they were', async () => {
        const first = await publish('first', [{ id: 'a' }, { id: 'b', updated: day(1) }], {
          facts: readOn(1),
        })
        const second = await publish(
          'second',
          [{ id: 'a' }, { id: 'b', updated: day(2) }, { id: 'c' }, { id: 'd' }],
          { facts: readOn(2) },
        )
        expect(first.manifest.changes).toEqual({ new: 2, changed: 0 })
        expect(second.manifest.changes).toEqual({ new: 2, changed: 1 })
        const stale = await publish('stale', [{ id: 'b', updated: day(1) }], { facts: readOn(3) })
        expect(stale.manifest.changes).toEqual({ new: 0, changed: 0 })
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

      test('shows nothing when another number of rows arrives than was read', async () => {
        const publication = await toPublication('first', [{ id: 'a' }])
        const parts = publication.parts.map((part, at) => (at === 0 ? { ...part, rows: 2 } : part))
        await expect(harness.destination.publish({ ...publication, parts })).rejects.toMatchObject({
          name: 'PartsDamagedError',
          message: expect.stringContaining('customers: 2 rows were read'),
        })
        await publish('second', [{ id: 'a' }])
        expect(await customers()).toMatchObject([{ id: 'a', run: 'second' }])
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

    describe('the account in `_exports`', () => {
      test('has one row for each resource and run, with its own verdict', async () => {
        await publish('first', [{ id: 'a' }], { facts: readOn(1) })
        await publish('first', [{ id: 'a' }], { facts: readOn(1) })
        const plans = await workplace.toPublication('plans', [], {
          run: 'first',
          mode: 'incremental',
          filters: { status: 'active' },
          facts: readOn(1, { verdict: 'unproven', reasons: ["a 'link' was lost"], completeThrough: null }),
        })
        await harness.destination.publish(plans)
        expect(
          await ask(`select run, resource, mode, filters, verdict, reasons, rows,
            case when complete_through = timestamptz '${day(1)}' then 'yes' end as complete,
            case when published_at is not null then 'yes' end as published
            from ${harness.schema}._exports order by resource`),
        ).toEqual([
          {
            run: 'first',
            resource: 'customers',
            mode: 'full',
            filters: '{}',
            verdict: 'proven',
            reasons: '[]',
            rows: '1',
            complete: 'yes',
            published: 'yes',
          },
          {
            run: 'first',
            resource: 'plans',
            mode: 'incremental',
            filters: '{"status":"active"}',
            verdict: 'unproven',
            reasons: `["a 'link' was lost"]`,
            rows: '0',
            complete: null,
            published: 'yes',
          },
        ])
      })

      test('is not there where the rows are not', async () => {
        const ending = new AbortController()
        const more = {
          signal: ending.signal,
          onStep: (step: string) => {
            if (step === 'counted') ending.abort(new Error('ended by the test'))
          },
        }
        await expect(publish('first', [{ id: 'a' }], more)).rejects.toThrow('ended by the test')
        expect(await harness.ask(`select run from ${harness.schema}._exports`)).toBeUndefined()
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

    describe('the form of its values', () => {
      const named = { excluded: ['customers.name', 'customers.contacts.email'] }
      const hashed = { hashed: ['customers.tax_id'], hashedWith: 'key a' }
      const both = { ...named, ...hashed }

      test.each([
        [
          'all values',
          {},
          [
            [named, 'without customers.name, customers.contacts.email'],
            [hashed, 'with customers.tax_id hashed'],
          ],
        ],
        [
          'fewer columns',
          named,
          [
            [{}, 'with all values as they are'],
            [{ excluded: ['customers.name'] }, 'without customers.name'],
            [{ excluded: [...named.excluded, 'customers.tax_id'] }, 'tax_id'],
          ],
        ],
        [
          'hashes',
          hashed,
          [
            [{}, 'with all values as they are'],
            [{ ...hashed, hashed: ['customers.id'] }, 'with customers.id hashed'],
            [{ ...hashed, hashedWith: 'key b' }, 'hashed with another key'],
          ],
        ],
        ['fewer columns and hashes', both, [[{ ...both, excluded: [] }, 'with customers.tax_id hashed']]],
      ] as [string, Partial<Publication>, [Partial<Publication>, string][]][])(
        'is that of its first publication: one with %s takes no others, however they are published',
        async (_title, first, others) => {
          await publish('first', [{ id: 'a' }], { facts: readOn(1), ...first })
          const now = Date.parse(day(2))
          const late = await toPublication('late', [{ id: 'b' }], { facts: readOn(1) })
          const check = (other: Partial<Publication>, reads = other) =>
            harness.destination.checkBeforeRead(
              { ...late, ...other },
              { reads: [{ ...late, ...reads }], now },
            )
          for (const [other, words] of others) {
            for (const more of [
              { facts: readOn(2) },
              { facts: readOn(2, { changedSince: day(1) }), mode: 'incremental' },
            ] as const)
              await expect(harness.destination.publish({ ...late, ...other, ...more })).rejects.toMatchObject(
                {
                  name: 'NotAdmittedError',
                  message: expect.stringContaining(words),
                },
              )
            await expect(check(other)).rejects.toThrow(words)
          }
          expect(await states()).toEqual(['a there'])
          await publish('second', [{ id: 'a' }], { facts: readOn(2), ...first })
          await check(others[0]![0], first)
        },
      )

      test('is that of each resource, but all have one key', async () => {
        await publish('first', [{ id: 'a' }], both)
        await publishPlan('first')
        await publishPlan('second')
        const subscriptions = await workplace.toPublication('subscriptions', [['{"id":"s"}']], {
          hashed: ['subscriptions.customer'],
          hashedWith: 'key b',
        })
        await expect(harness.destination.publish(subscriptions)).rejects.toThrow('hashed with another key')
        await harness.destination.publish({ ...subscriptions, hashedWith: 'key a' })
      })
    })

    describe('whose warehouse it is', () => {
      test.each([
        ['workspace', { workspace: 'acc_2' }, 'acc_2'],
        ['address', { baseUrl: 'https://other.example/api' }, 'https://other.example/api'],
      ])('is refused to another %s, in a sentence', async (word, other, told) => {
        await publishFirst([{ id: 'a' }])
        await expect(publish('second', [], { facts: readOn(2), ...other })).rejects.toMatchObject({
          name: 'NotAdmittedError',
          message: expect.stringMatching(new RegExp(`${word} .*not ${told}`)),
        })
        expect(await states()).toEqual(['a there'])
      })

      test('does not depend on how the same address is written, and shows no password', async () => {
        await publishFirst([{ id: 'a' }])
        const baseUrl = 'https://user:secret@BILLING.example/api/v1/'
        await publish('second', [{ id: 'a' }], { facts: readOn(2), baseUrl })
        expect(await ask(`select base_url, mode from ${harness.schema}._warehouse`)).toEqual([
          { base_url: 'https://billing.example/api/v1', mode: 'live' },
        ])
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
