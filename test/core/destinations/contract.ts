import { toPlainJson } from './plain-value.ts'
import { appendFile, readFile, truncate, writeFile } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Destination, Publication, PublishStep } from '../../../core/destinations/destination.ts'
import { manifestSchema } from '../../../core/destinations/manifest.ts'
import { parseLossless } from '../../../core/billing/lossless-json.ts'
import { createWorkplace, facts, type Workplace } from './publication.ts'
import { toScalarText } from '../../../core/billing/lossless-json.ts'

/** A row as a reader of the destination sees it: texts by column, null where there is none. */
export type SeenRow = Record<string, string | null>

/** A destination under test, and how to look into it from outside. */
export interface Harness {
  destination: Destination
  /** The rows of a table of a publication in the order of its key; undefined where nothing of it is visible. */
  rows(publication: Publication, table: string): Promise<SeenRow[] | undefined>
  /** Removes a published table from outside: its file, or the table of a warehouse. */
  remove(publication: Publication, table: string): Promise<void>
  /** Whether publishing again brings such a table back: always, or never if absent; `maybe` where the same bytes may come out. */
  restores?: true | 'maybe'
  close(): Promise<void>
}

/** What every destination promises, whatever it is made of. */
export function describeDestination(name: string, open: (workplace: Workplace) => Promise<Harness>): void {
  describe(`publishing to ${name}`, () => {
    let workplace: Workplace
    let harness: Harness
    beforeEach(async () => {
      workplace = await createWorkplace()
      harness = await open(workplace)
    })
    afterEach(async () => {
      await harness.close()
      await workplace.close()
    })

    const publish = (publication: Publication) => harness.destination.publish(publication)
    const toPublication: Workplace['toPublication'] = (...given) => workplace.toPublication(...given)
    const main = (publication: Publication) => harness.rows(publication, publication.resource)

    const threeCustomers = [
      ['{"id":"cus_1","name":"Uno","contacts":[{"id":"con_1"},{"id":"con_2"}]}'],
      ['{"id":"cus_2","name":"Dos"}', '{"id":"cus_3","name":"Tres","contacts":[{"id":"con_3"}]}'],
    ]

    test('shows every row of every table, from all parts, and nothing of what does not count', async () => {
      const publication = await toPublication('customers', threeCustomers)
      const published = await publish(publication)
      expect((await main(publication))?.map((row) => [row['id'], row['name']])).toEqual([
        ['cus_1', 'Uno'],
        ['cus_2', 'Dos'],
        ['cus_3', 'Tres'],
      ])
      const contacts = await harness.rows(publication, 'customer_contacts')
      expect(contacts?.map((row) => [row['customer_id'], row['position'], row['id']])).toEqual([
        ['cus_1', '1', 'con_1'],
        ['cus_1', '2', 'con_2'],
        ['cus_3', '1', 'con_3'],
      ])
      expect(published).toMatchObject({ fresh: true, manifest: { destination: harness.destination.name } })
      expect(published.manifest.tables.map(({ name, rows }) => [name, rows])).toEqual([
        ['customers', 3],
        ['customer_contacts', 3],
      ])
    })

    test('shows each of two records that have one id where it has no keys, and publishes it once where it has', async () => {
      const publication = await toPublication(
        'customers',
        [
          ['{"id":"cus_1","name":"New","updated":"2026-02-03T00:00:00Z","contacts":[{"id":"con_1"}]}'],
          ['{"id":"cus_2","contacts":[{"id":"con_2"}]}'],
          ['{"id":"cus_1","name":"Old","updated":"2026-02-01T00:00:00Z","contacts":[{"id":"con_3"}]}'],
        ],
        { facts: { ...facts, verdict: 'unproven', reasons: ['cus_1'], repeatedIds: ['cus_1'] } },
      )
      const { manifest } = await publish(publication)
      expect(manifest).toMatchObject({ verdict: 'unproven', reasons: ['cus_1'], repeatedIds: ['cus_1'] })
      const names = (await main(publication))?.map(({ id, name }) => `${id} ${name}`).toSorted()
      const contacts = await harness.rows(publication, 'customer_contacts')
      if (manifest.tables.every(({ files }) => files.length === 0)) {
        expect(names).toEqual(['cus_1 New', 'cus_2 null'])
        expect(contacts?.map(({ id }) => id)).toEqual(['con_2'])
        expect(manifest.tables).toMatchObject([{ rows: 2 }, { rows: 1 }])
        expect(manifest.warnings).toEqual([
          'Of the records with one id, the one that was changed last is here, without rows in customer_contacts: cus_1.',
        ])
      } else {
        expect(names).toEqual(['cus_1 New', 'cus_1 Old', 'cus_2 null'])
        expect(contacts?.map(({ id }) => id).toSorted()).toEqual(['con_1', 'con_2', 'con_3'])
      }
      expect(await publish(publication)).toMatchObject({ fresh: false })
    })

    test('shows the tables of tables in tables', async () => {
      const publication = await toPublication('subscriptions', [
        ['{"id":"sub_1","addons":[{"addon":"a"},{"addon":"b","rates":[{"percentage":10.5}]}]}'],
      ])
      await publish(publication)
      const rates = await harness.rows(publication, 'subscription_addon_rates')
      expect(rates).toMatchObject([
        { subscription_id: 'sub_1', subscription_addon_position: '2', position: '1', percentage: '10.5' },
      ])
    })

    test('shows a table without rows too', async () => {
      const publication = await toPublication('plans', [])
      await publish(publication)
      expect(await main(publication)).toEqual([])
      expect(await harness.rows(publication, 'plan_tiers')).toEqual([])
    })

    /** The number in a column, or what stands for it in `_extra`, without the zeros of a fixed scale. */
    const numberIn = (row: SeenRow | undefined, column: string): string | undefined => {
      const extra = parseLossless(row?.['_extra'] ?? '{}') as Record<string, Record<string, unknown>>
      const [outer = '', inner = ''] = column.split('_')
      const beside = extra[outer]?.[inner] ?? extra[column] ?? extra['_misfits']?.[column]
      return row?.[column]?.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '') ?? toScalarText(beside)
    }

    test('keeps every value as it was sent: in its column, or beside it and counted', async () => {
      const inColumn = ['0.10', '12345678901234567.89', '"1500.50"', '9999999999999999999999.99999999']
      const anywhere = [
        '-0.000000000000000000001',
        '123456789012345678901234567890',
        '0.123456789',
        '99999999999999999999999',
        '1234567890'.repeat(6),
      ]
      const times = [
        '2020-10-15T13:26:15.356289-03:00',
        '2020-10-15T13:26:15Z',
        '0999-01-01T00:00:00.1+05:30',
      ]
      // Beyond ASCII, quotes, delimiters, line ends, the end of a COPY in other formats, what looks like a number.
      const texts = ['', 'Ñuñoa – 日本 😀\u2028', 'a "b", c; d\r\ne\n\\N\t\'=1', '\\.\n\\.\n', '007']
      const metadata = '{"ñ":[1.50,null,"a\\"b"],"e":{}}'
      const publication = await toPublication('customers', [
        [
          ...inColumn.map((sales, at) => `{"id":"in ${at}","aggregations":{"sales":${sales}}}`),
          ...anywhere.map((sales, at) => `{"id":"any ${at}","nick":"Uno","aggregations":{"sales":${sales}}}`),
          ...times.map((created, at) => JSON.stringify({ id: `time ${at}`, created })),
        ],
        [
          ...texts.map((name, at) => JSON.stringify({ id: `\\.${at}`, name, manager: null })),
          `{"id":"json","metadata":${metadata},"nick":0.10,"name":"a\\u0000b","sources":[]}`,
        ],
      ])
      const { manifest } = await publish(publication)
      const rows = (await main(publication)) ?? []
      expect(rows).toHaveLength(inColumn.length + anywhere.length + times.length + texts.length + 1)
      const rowsOf = (sent: readonly string[], what: string) =>
        sent.map((_, at) => rows.find(({ id }) => id === `${what}${at}`))
      expect(
        rowsOf(inColumn, 'in ').map((row) => [numberIn(row, 'aggregations_sales'), row?.['_extra']]),
      ).toEqual(['0.1', inColumn[1], '1500.5', inColumn[3]].map((value) => [value, null]))
      expect(rowsOf(inColumn, 'in ')).not.toContainEqual(
        expect.objectContaining({ aggregations_sales: null }),
      )
      const ofAny = rowsOf(anywhere, 'any ')
      expect(ofAny.map((row) => numberIn(row, 'aggregations_sales'))).toEqual(anywhere)
      for (const row of ofAny) expect(JSON.parse(row?.['_extra'] ?? '')).toMatchObject({ nick: 'Uno' })
      const count = ofAny.filter((row) => row?.['aggregations_sales'] === null).length
      expect(manifest.drift).toEqual(
        count > 0 ? { 'customers.aggregations.sales': { count, example: 'a number' } } : {},
      )
      expect(manifest.warnings ?? []).toHaveLength(count > 0 ? 1 : 0)
      expect(rowsOf(times, 'time ').map((row) => row?.['created'])).toEqual(times)
      expect(rowsOf(texts, '\\.')).toMatchObject(texts.map((name) => ({ name, manager: null, email: null })))
      const json = rows.find(({ id }) => id === 'json')
      expect(json).toMatchObject({ sources: '[]', name: null, _extra: '{"name":"a\\u0000b","nick":0.10}' })
      // A warehouse may write JSON in a notation of its own, but keeps every digit.
      expect(toPlainJson(json?.['metadata'] ?? '')).toBe(toPlainJson(metadata))
      expect(json?.['metadata']).toContain('1.50')
    })

    test('takes the largest numbers, and keeps what is larger than any destination holds beside them', async () => {
      const digits = '7'.repeat(6_001)
      const publication = await toPublication('customers', [
        [`{"id":"1","aggregations":{"sales":1e9999,"balance":1e-9999},"state":{"id":${digits.slice(1)}}}`],
        [`{"id":"2","aggregations":{"sales":1e10000},"state":{"id":${digits}}}`],
      ])
      await publish(publication)
      const [largest, larger] = (await main(publication)) ?? []
      expect(numberIn(largest, 'state_id')).toBe(digits.slice(1))
      expect(larger).toMatchObject({ state_id: null, aggregations_sales: null })
      expect(toPlainJson(larger?.['_extra'] ?? '')).toBe(
        toPlainJson(`{"state":{"id":${digits}},"aggregations":{"sales":1e10000}}`),
      )
    })

    test('keeps integers, booleans and dates', async () => {
      const publication = await toPublication('retentions', [
        ['{"id":42,"number":12345678901234567890,"imported":false,"date":"2024-02-29"}'],
      ])
      await publish(publication)
      const [row] = (await main(publication)) ?? []
      expect(row).toMatchObject({ id: '42', imported: 'false', date: '2024-02-29' })
      expect(numberIn(row, 'number')).toBe('12345678901234567890')
    })

    test('keeps a cell of 5 MB', async () => {
      const name = 'á"\n,'.repeat(1_100_000)
      const publication = await toPublication('customers', [
        [JSON.stringify({ id: '1', name }), '{"id":"2"}'],
      ])
      await publish(publication)
      const rows = (await main(publication)) ?? []
      expect(rows.map((row) => row['name'] === (row['id'] === '1' ? name : null))).toEqual([true, true])
    })

    test('changes nothing when it is done again, and refuses another read or other contents under its name', async () => {
      const publication = await toPublication('customers', threeCustomers)
      const first = await publish(publication)
      const rows = await main(publication)
      expect(await publish(publication)).toEqual({ ...first, fresh: false })
      const other = await toPublication('customers', [['{"id":"cus_9"}']])
      await expect(publish(other)).rejects.toMatchObject({ name: 'AlreadyPublishedError' })
      // Of the same rows, but its verdict is not the first one.
      const startedAt = '2026-03-20T03:00:00.000Z'
      const unproven = { ...facts, startedAt, verdict: 'unproven' as const, reasons: ['a link was lost'] }
      await expect(publish({ ...publication, facts: unproven })).rejects.toMatchObject({
        name: 'AlreadyPublishedError',
        message: expect.stringContaining('start a new run'),
      })
      expect(await publish(publication)).toEqual({ ...first, fresh: false })
      expect(await main(publication)).toEqual(rows)
    })

    test.each(['customers', 'customer_contacts'])(
      'never says that a run is published whose table %s someone removed',
      async (table) => {
        const publication = await toPublication('customers', threeCustomers)
        await publish(publication)
        const rows = await harness.rows(publication, table)
        await harness.remove(publication, table)
        const again = await publish(publication).catch((error: unknown) => error)
        if (harness.restores === true || (harness.restores === 'maybe' && !(again instanceof Error))) {
          expect(again).toMatchObject({ fresh: false })
          expect(await harness.rows(publication, table)).toEqual(rows)
          return
        }
        expect(again).toMatchObject({
          name: 'AlreadyPublishedError',
          message: expect.stringMatching(new RegExp(`no longer has ${table}.*start a new run`)),
        })
      },
    )

    test('shows nothing when it is ended as it begins, has staged or has counted, and all when done again', async () => {
      const publication = await toPublication('customers', threeCustomers)
      const reason = new Error('ended by the test')
      for (const step of ['begun', 'staged', 'counted'] as const) {
        const ending = new AbortController()
        const onStep = (reached: PublishStep | 'begun') => {
          if (reached === step) ending.abort(reason)
        }
        onStep('begun')
        await expect(publish({ ...publication, signal: ending.signal, onStep })).rejects.toBe(reason)
        expect(await main(publication), step).toBeUndefined()
      }
      await publish(publication)
      expect(await main(publication)).toHaveLength(3)
    })

    test.each([
      ['of other bytes of the same length', swapDigits],
      ['longer than was written', (path: string) => appendFile(path, 'x')],
      ['shorter than was written', (path: string) => truncate(path, 5)],
      ['of no table', undefined],
    ])('shows nothing when a part is %s', async (_title, damage) => {
      const publication = await toPublication('customers', threeCustomers)
      await damage?.(publication.parts[0]!.path)
      const parts = damage ? publication.parts : [{ ...publication.parts[0]!, table: 'plans' }]
      await expect(publish({ ...publication, parts })).rejects.toMatchObject({ name: 'PartsDamagedError' })
      expect(await main(publication)).toBeUndefined()
    })

    test('never shows test data among live data', async () => {
      const live = await toPublication('customers', threeCustomers)
      await publish(live)
      const rehearsal = await toPublication('customers', [['{"id":"cus_9"}']], { testMode: true })
      await publish(rehearsal)
      expect(await main(live)).toHaveLength(3)
      expect((await main(rehearsal))?.map((row) => row['id'])).toEqual(['cus_9'])
    })

    test("is refused to another workspace, where one's records lie", async () => {
      const own = await toPublication('customers', threeCustomers)
      await publish(own)
      const other = await toPublication('customers', [['{"id":"cus_9"}']], {
        run: 'other',
        workspace: 'acc_2',
        facts: { ...facts, startedAt: '2026-03-02T03:00:00.000Z' },
      })
      await expect(publish(other)).rejects.toMatchObject({ name: 'NotAdmittedError' })
      expect(await main(own)).toHaveLength(3)
      expect((await main(other))?.map((row) => row['id']) ?? []).not.toContain('cus_9')
    })

    test('gives an account that says what was asked, what the read said, and what arrived', async () => {
      // Its name is cut between the halves of a pair of surrogates, which alone are no JSON for DuckDB.
      const long = `customers.${'x'.repeat(69)}`
      const publication = await toPublication(
        'customers',
        [['{"id":"cus_1"}', '{"name":"no id"}', '["no object"]']],
        {
          facts: {
            ...facts,
            verdict: 'unproven',
            reasons: ['a link was lost'],
            drift: { 'customers.name': { count: 2, example: 'a list' } },
            unknownFields: { 'customers.nickname': 1, 'customers.known': 1, [`${long}😀`]: 2 },
            newFields: ['customers.nickname', `${long}😀`],
            absentFields: ['customers.phone'],
            vanishedFields: ['customers.phone'],
          },
        },
      )
      const { manifest } = await publish(publication)
      expect(manifestSchema.parse(JSON.parse(JSON.stringify(manifest)))).toEqual(manifest)
      expect(manifest).toMatchObject({
        run: 'export-customers-2026-03-01',
        resource: 'customers',
        workspace: 'acc_1',
        testMode: false,
        mode: 'full',
        verdict: 'unproven',
        reasons: ['a link was lost'],
        drift: { 'customers.name': { count: 2, example: 'a list' } },
        warnings: [
          '2 values do not fit their columns: customers.name 2 (a list). They are empty there, and kept in _extra.',
          `The service sends new fields, kept in _extra: customers.nickname 1, ${long}\ufffd... 2.`,
          'The service no longer sends fields that an earlier export has: customers.phone.',
        ],
        rejected: { rows: 2 },
        versions: { connector: '0.1.0' },
      })
    })

    test('does not say that _extra has what did not fit where it is excluded', async () => {
      const exclude = ['customers._extra']
      const drift = { 'customers.name': { count: 1, example: 'a list' } }
      const batches = [['{"id":"cus_1","name":["no text"]}']]
      const { manifest } = await publish(
        await toPublication(
          'customers',
          batches,
          { facts: { ...facts, drift }, excluded: exclude },
          { exclude },
        ),
      )
      expect(manifest.warnings).toEqual([
        '1 value does not fit its column: customers.name 1 (a list). It is empty there, and kept in _extra, unless it is excluded.',
      ])
    })
  })
}

/** Changes a cell as a failing disk does: what is there is still a row. */
async function swapDigits(path: string): Promise<void> {
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace('cus_1', 'cus_9'))
}
