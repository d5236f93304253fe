import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { checkFile } from '../../../core/imports/check.ts'
import type { ImportKindName } from '../../../core/imports/kinds.ts'
import { importKindNames } from '../../../core/imports/kinds.ts'
import { template } from '../../../core/imports/mapping/columns.ts'
import type { Problem } from '../../../core/imports/problems.ts'
import { createChangesFile } from '../../../core/changes/staged-changes.ts'
import { bodiesOf, fileOf, ofRun, problemsOf, stage, temporaryFolder } from './csv-file.ts'

type Row = [kind: ImportKindName, cells: Record<string, string>]
const retention = { supplier: 's', document: '7', number: '1', date: '2026-03-25', 'lines.1.name': 'x' }
const addon = { name: 'a', description: 'b', currency: 'CLP', amount: '1' }
const charge = { collection_scheme: 'charge_payment' }
const ofRetention = (more: object): Row => ['retentions', { ...retention, ...more }]
const ofAddon = (more: object): Row => ['addons', { ...addon, ...more }]
const ofContact = (more: object): Row => ['update-contacts', { id: 'c', ...more }]
const ofSubscription = (more: object): Row => ['update-subscriptions', { id: 's', ...more }]

/** The problems of a file of one row. */
async function problemsOfRow([kind, fields]: Row): Promise<Partial<Problem>[]> {
  const quoted = (cells: string[]) => cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(';')
  const path = await fileOf(`${quoted(Object.keys(fields))}\n${quoted(Object.values(fields))}\n`)
  return (await checkFile({ kind, path })).problems
}

describe('a cell is held against what the service says of its field', () => {
  test.each<[string, Row, Partial<Problem>]>([
    ['a required field', ofAddon({ name: ' ' }), { column: 'name', rule: 'required' }],
    ['a text too long', ofAddon({ name: 'x'.repeat(57) }), { column: 'name', rule: 'length' }],
    ['an unknown word', ofAddon({ status: 'activ' }), { rule: 'value', value: 'activ', fix: 'active' }],
    ['a number that is none', ofAddon({ amount: 'doce' }), { rule: 'number', value: 'doce' }],
    ['a fraction of a whole', ofAddon({ duration_times: '1,5' }), { rule: 'number' }],
    ['null where it can’t be', ofAddon({ name: '\\N' }), { rule: 'null' }],
    [
      'a date that does not exist',
      ofRetention({ date: '2026-02-30' }),
      { rule: 'date', value: '2026-02-30' },
    ],
    ['the retention number 0', ofRetention({ number: '0' }), { column: 'number', rule: 'min', value: '0' }],
    ['no retention number', ofRetention({ number: '' }), { column: 'number', rule: 'required' }],
    ['no lines', ofRetention({ 'lines.1.name': '' }), { column: 'lines', rule: 'required' }],
    ['a word for a truth', ofRetention({ 'lines.1.exempt': 'sí' }), { rule: 'boolean', fix: 'true' }],
    ['half an address', ofContact({ email: 'ana@' }), { rule: 'email', value: 'ana@' }],
    ['an address with a slip', ofContact({ email: 'ana@x.cl,' }), { rule: 'email', fix: 'ana@x.cl' }],
    ['a phone too long', ofContact({ phone: '+569123456789' }), { rule: 'length' }],
    ['a factor below 1', ofSubscription({ custom_change: '0,99' }), { rule: 'min' }],
    ['a charge without a source', ofSubscription(charge), { column: 'default_source', rule: 'required' }],
    [
      'a source made null',
      ofSubscription({ ...charge, default_source: '\\N' }),
      { column: 'default_source', rule: 'required' },
    ],
  ])('%s', async (_what, row, problem) => {
    expect(await problemsOfRow(row)).toEqual([expect.objectContaining({ row: 2, ...problem })])
  })

  test.each<[string, Row]>([
    ['the longest name, in characters of two halves', ofAddon({ name: '😀'.repeat(56) })],
    ['a whole number with a zero behind the comma', ofAddon({ duration_times: '12,0' })],
    ['the least factor', ofSubscription({ custom_change: '1' })],
    ['a charge with a source', ofSubscription({ ...charge, default_source: 'src' })],
    ['null where it can be', ofSubscription({ note: '\\N' })],
    ['truth as a spreadsheet in Spanish has it', ofContact({ invoicing: 'VERDADERO' })],
    ['truth as a spreadsheet in Portuguese has it', ofContact({ invoicing: 'VERDADEIRO' })],
  ])('and %s passes', async (_what, row) => {
    expect(await problemsOfRow(row)).toEqual([])
  })
})

test('every problem of a file is said at once, where a spreadsheet has it', async () => {
  const path = await fileOf(
    'name;description;currency;amount;status\n"Uno\ny medio";;CLP;x;activ\n\n;d;CLP;1;active\n',
  )
  expect(await problemsOf({ kind: 'addons', path })).toEqual([
    'row 2, amount: x is not a number',
    'row 2, status: activ is not one of active, archived; did you mean active?',
    'row 2, description: is required for every addon, but empty',
    'row 4, name: is required for every addon, but empty',
  ])
})

describe('an empty cell', () => {
  test('is not given on create, left as it is on update, and \\N is null; each is counted', async () => {
    const path = await fileOf('id;note;expiration_days;coupon\ns1;;10;\\N\ns2;;;\\N\n')
    const file = { kind: 'update-subscriptions', path } as const
    expect(await bodiesOf(file)).toEqual([
      '{"id":"s1","expiration_days":10,"coupon":null}',
      '{"id":"s2","coupon":null}',
    ])
    expect((await checkFile(file)).columns).toEqual([
      { column: 'id', field: 'id', given: 2, empty: 0, null: 0 },
      { column: 'note', field: 'note', given: 0, empty: 2, null: 0 },
      { column: 'expiration_days', field: 'expiration_days', given: 1, empty: 1, null: 0 },
      { column: 'coupon', field: 'coupon', given: 0, empty: 0, null: 2 },
    ])
  })

  test('in every column leaves an update with nothing to send', async () => {
    const path = await fileOf('id;phone\nc1;\nc2;123\n')
    const rows = await stage({ kind: 'update-contacts', path })
    expect(rows.map(({ row, closed }) => [row, closed?.outcome])).toEqual([
      [2, 'nothingGiven'],
      [3, undefined],
    ])
  })
})

describe('doubles inside a file', () => {
  test('are errors that name both rows, whatever the zeros and blanks of their keys', async () => {
    const header = `${Object.keys(retention).join(';')}\n`
    const path = await fileOf(`${header}s;7;1;2026-03-25;x\ns;7;2;2026-03-25;x\n s ;07;001;2026-04-25;y\n`)
    const file = { kind: 'retentions', path } as const
    expect(await problemsOf(file)).toEqual([
      'row 4, supplier, document, number: is the same retention as row 2',
    ])
    expect(await checkFile(file)).toMatchObject({ valid: 1, invalid: 2, duplicates: { 2: 4, 4: 2 } })
    // Which of the two is right, nobody can tell from here: neither is sent.
    expect((await stage(file, 'skip')).map(({ row, closed }) => [row, closed?.outcome])).toEqual([
      [2, 'invalid'],
      [3, undefined],
      [4, 'invalid'],
    ])
  })

  test('of what has no key of its own are rows that say the same', async () => {
    const path = await fileOf('name;unit_label\na;b\nc;d\na;b\n')
    expect(await problemsOf({ kind: 'products', path })).toEqual(['row 4: is the same product as row 2'])
  })
})

test('a row whose request would be larger than 64 KB is a problem, and one below it is none', async () => {
  const path = (lines: number) => {
    const items = Array.from({ length: lines }, (_, at) => ({ name: `${at} ${'x'.repeat(80)}`, amount: 1 }))
    const cells = ['s', '7', '1', '2026-03-25', JSON.stringify(items).replaceAll('"', '""')]
    return fileOf(`supplier;document;number;date;lines\n${cells.map((cell) => `"${cell}"`).join(';')}\n`)
  }
  expect(await problemsOf({ kind: 'retentions', path: await path(600) })).toEqual([])
  expect(await problemsOf({ kind: 'retentions', path: await path(700) })).toEqual([
    expect.stringMatching(/^row 2: makes a request of 7\d,\d{3} bytes; at most 65,536 are sent$/),
  ])
})

describe('control totals', () => {
  const path = () =>
    fileOf(
      'supplier;document;number;date;total;tax_percent;lines.1.amount;lines.2.amount\n' +
        's;7;1;2026-03-25;100,10;19;0,1;0,2\ns;7;2;2026-03-25;200,20;19;0,1;\ns;8;3;2026-03-25;-0,3;19;1;\n',
    )

  test('are exact, for each amount and each document type', async () => {
    const { totals } = await checkFile({ kind: 'retentions', path: await path() })
    expect(totals).toEqual({
      rows: 3,
      changes: 3,
      decimal: ',',
      sums: { 'lines.amount': '1.4', total: '300.00' },
      by: {
        field: 'document',
        values: {
          '7': { changes: 2, sums: { 'lines.amount': '0.4', total: '300.30' } },
          '8': { changes: 1, sums: { 'lines.amount': '1', total: '-0.3' } },
        },
      },
    })
  })

  test('are also asked for by the name that the sheet gives the column', async () => {
    const file = await fileOf('supplier;document;number;date;Importe\ns;7;1;2026-03-25;100,10\n')
    const problems = await problemsOf({
      kind: 'retentions',
      path: file,
      mapping: { columns: { Importe: 'total' } },
      expectTotals: { Importe: '100,20' },
    })
    expect(problems.filter((problem) => problem.startsWith('--'))).toEqual([
      '--expect-total Importe: 100,20 was expected, but the sheet adds up to 100,10. The sheet and your total differ by 0,10',
    ])
  })

  test('are not compared with another column whose field has the name', async () => {
    const problemsWith = async (expectTotals: Record<string, string>, other = '') => {
      const file = await fileOf(
        'supplier;document;number;date;concept;total;Importe\ns;7;1;2026-03-25;Flete;100,10;200,20\n',
      )
      const problems = await problemsOf({
        kind: 'retentions',
        path: file,
        mapping: { columns: { total: 'lines.amount', ...(other && { Importe: other }) } },
        expectTotals,
      })
      return problems.filter((problem) => problem.startsWith('--'))
    }
    expect(await problemsWith({ total: '100,10' })).toEqual([])
    expect(await problemsWith({ 'lines.amount': '100,10', Importe: '200,20' }, 'total')).toEqual([])
    const unclear = [
      expect.stringMatching(/^--expect-total total: .* could be the sum of total in the sheet or/),
    ]
    expect(await problemsWith({ total: '100,10' }, 'total')).toEqual(unclear)
    expect(await problemsWith({ total: '200,20' }, 'total')).toEqual(unclear)
  })

  test('are held against what was expected, as numbers of the file are written', async () => {
    const file = { kind: 'retentions', path: await path() } as const
    const right = { total: '300,0', 'lines.amount': '1,40' }
    expect(await problemsOf({ ...file, expectRows: 3, expectTotals: right })).toEqual([])
    const expectTotals = { total: '300,01', 'lines.amont': '1', 'lines.amount': '1.400' }
    expect(await problemsOf({ ...file, expectRows: 4, expectTotals })).toEqual([
      '--expect-rows: 4 rows were expected, but the sheet has 3',
      '--expect-total total: 300,01 was expected, but the sheet adds up to 300,00. The sheet and your total differ by 0,01',
      '--expect-total lines.amont: 1 was expected, but this column has no total; did you mean lines.amount?',
      '--expect-total lines.amount: 1.400 was expected, but the sheet adds up to 1,4. The sheet and your total differ by 1.398,6',
    ])
  })
})

describe('a file with problems', () => {
  const text = 'name;unit_label;status\na;b;activ\nc;d;active\n'

  test('gives nothing away', async () => {
    await expect(stage({ kind: 'products', path: await fileOf(text) })).rejects.toMatchObject({
      name: 'InvalidFile',
      message:
        'file.csv has 1 problem, so nothing was sent: row 2, status: activ is not one of active, archived; did you mean active?',
    })
  })

  test('gives its bad rows closed and the others to send, where that is asked for', async () => {
    const meant = expect.stringContaining('did you mean active?') as unknown
    const key = expect.stringMatching(/^[0-9a-f]{32}$/) as unknown
    expect(await stage({ kind: 'products', path: await fileOf(text) }, 'skip')).toMatchObject([
      { row: 2, closed: { state: 'rejected', outcome: 'invalid', error: meant } },
      { row: 3, body: '{"name":"c","unit_label":"d","status":"active"}', key },
    ])
  })

  test('is staged as it was checked, although it changes in between', async () => {
    const path = await fileOf('name;unit_label;status\na;b;active\n')
    await using changes = await createChangesFile(await temporaryFolder(), ofRun)
    await checkFile({ kind: 'products', path, changes })
    await writeFile(path, 'name;unit_label;status\nother;b;active\n')
    const [staged] = await Array.fromAsync(changes.batches())
    expect(staged).toMatchObject([{ row: 2, body: '{"name":"a","unit_label":"b","status":"active"}' }])
  })

  test.each([
    ['45.890', 'could mean'],
    ['7.65E+08', 'is in scientific notation'],
  ])('gives nothing away even then, where %s puts the whole file in doubt', async (amount, reason) => {
    const path = await fileOf(`name;description;currency;amount\na;b;CLP;${amount}\n`)
    await expect(stage({ kind: 'addons', path }, 'skip')).rejects.toThrow(reason)
  })

  test('of a hundred thousand kinds keeps a thousand, and counts them all', async () => {
    const path = await fileOf(`name;unit_label;status\n${'a;b;x\n'.repeat(3_000)}`)
    const check = await checkFile({ kind: 'products', path })
    expect(check.problems).toHaveLength(1_000)
    expect(check.problemCount).toBe(3_000)
  })
})

describe('a template', () => {
  test.each(
    importKindNames.flatMap((kind) =>
      ['es-CL', 'es-MX', 'en-US', 'sv-SE', 'de-DE', 'hu-HU', 'ar-EG'].map(
        (locale) => [kind, locale] as const,
      ),
    ),
  )('of %s for %s imports as it is', async (kind, locale) => {
    const path = await fileOf(template({ kind, locale }))
    expect(await problemsOf({ kind, path, mapping: { locale } })).toEqual([])
    expect(await stage({ kind, path, mapping: { locale } })).toHaveLength(1)
  })

  test('is written as its people write', () => {
    const [header, row] = template({ kind: 'retentions', locale: 'es-CL' }).split('\n')
    expect(header).toBe(
      '\ufeffsupplier;document;number;date;total;lines.1.name;lines.1.amount;lines.1.quantity;lines.1.tax;tax_percent',
    )
    expect(row).toBe('sup_0001;7;1234;25-03-2026;45890,50;Honorarios;45890,50;1;6654,12;14,5')
    expect(template({ kind: 'retentions', locale: 'es-MX' })).toContain(',25-03-2026,45890.50,')
  })
})
