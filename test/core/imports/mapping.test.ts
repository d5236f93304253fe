import { join } from 'node:path'
import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { contact } from '../../../core/billing/resources/customers.ts'
import { fieldsOf } from '../../../core/billing/resources/fields.ts'
import { checkFile } from '../../../core/imports/check.ts'
import { type Mapping, readMapping, toMapping } from '../../../core/imports/mapping/mapping.ts'
import { toSentence } from '../../../core/imports/problems.ts'
import { bodiesOf, fileOf, problemsOf, temporaryFolder } from './csv-file.ts'

const products = 'name;unit_label\na;b\n'

describe('columns', () => {
  test('are known by name, whatever their capitals, and the others are named with what they might be', async () => {
    const path = await fileOf('Name; UNIT_LABEL ;statuss\na;b;active\n')
    expect(await problemsOf({ kind: 'products', path })).toEqual([
      expect.stringMatching(
        /^row 1, statuss: is not a field of products.*--map statuss=.*did you mean status\?$/,
      ),
    ])
    const mapping = toMapping({ map: ['statuss=status'] })
    expect(await bodiesOf({ kind: 'products', path, mapping })).toEqual([
      '{"name":"a","unit_label":"b","status":"active"}',
    ])
  })

  test('that are missing are named once, with the column that might be it', async () => {
    const path = await fileOf('Folio;lines.1.name;Numero;supplier;document\n1;x;2;s;7\n3;x;2;s;7\n')
    expect(await problemsOf({ kind: 'retentions', path, mapping: toMapping({ map: ['Folio='] }) })).toEqual([
      expect.stringMatching(/^row 1, Numero: is not a field/),
      expect.stringMatching(/^row 1, number: is required for every retention.*did you mean Numero\?$/),
      expect.stringMatching(/^row 1, date: is required for every retention/),
    ])
  })

  test('that are mapped may have an equals sign in their name, and one may be left out', async () => {
    const path = await fileOf('A=B;unit_label;x\na;b;c\n')
    const mapping = toMapping({ map: ['A=B=name', 'x='] })
    expect(await bodiesOf({ kind: 'products', path, mapping })).toEqual(['{"name":"a","unit_label":"b"}'])
    expect((await checkFile({ kind: 'products', path, mapping })).ignored).toEqual([
      { column: 'x', reason: 'it is mapped to nothing' },
    ])
  })

  test('of which two stand for one field stop the file', async () => {
    const path = await fileOf('name;Nombre;unit_label\na;a;b\n')
    const mapping = toMapping({ map: ['Nombre=name'], set: ['unit_label=x'] })
    expect(await problemsOf({ kind: 'products', path, mapping })).toEqual([
      'row 1, Nombre: maps to name, and so does name',
      '--set unit_label: maps to unit_label, and so does unit_label',
    ])
  })

  test('that only the service writes are left out of a create, and said so', async () => {
    const path = await fileOf('id;name;unit_label;created;_extra\n9;a;b;2026-01-01T00:00:00Z;\n')
    expect(await bodiesOf({ kind: 'products', path })).toEqual(['{"name":"a","unit_label":"b"}'])
    expect((await checkFile({ kind: 'products', path })).ignored).toEqual([
      { column: 'id', reason: 'only the service writes it' },
      { column: 'created', reason: 'only the service writes it' },
      { column: '_extra', reason: 'it comes from an export and is not a field' },
    ])
    const mapping = toMapping({ map: ['name=created'] })
    expect((await problemsOf({ kind: 'products', path, mapping }))[0]).toBe(
      'row 1, name: maps to created, which only the service writes',
    )
  })
})

describe('an update', () => {
  const cells: Record<string, string> = {
    customer_id: 'cus_1',
    position: '1',
    id: 'con_1',
    name: 'Ana',
    email: 'ana@example.com',
    phone: '+56912345678',
  }
  const columns = ['customer_id', 'position', ...fieldsOf(contact).map(([name]) => name)]
  const everything = `${columns.join()}\n${columns.map((name) => cells[name] ?? '').join()}\n`

  test('with every column of an export is refused until the columns are named', async () => {
    const path = await fileOf(everything)
    const file = { kind: 'update-contacts', path } as const
    expect(await problemsOf(file)).toEqual([
      expect.stringMatching(/has every column of an export.*--columns: name, email, .*phone/),
    ])
    expect(await bodiesOf({ ...file, columns: ['phone'] })).toEqual(['{"id":"con_1","phone":"+56912345678"}'])
    expect(await problemsOf({ ...file, columns: ['phnoe'] })).toEqual([
      'row 1, id: is the only column that is read, so there is nothing to change',
      '--columns phnoe: is not a column of the file; did you mean phone?',
    ])
  })

  test('needs an id', async () => {
    const path = await fileOf('name\nAna\n')
    expect(await problemsOf({ kind: 'update-contacts', path })).toEqual([
      expect.stringMatching(/^row 1, id: is required for every contact/),
    ])
    const empty = await fileOf('id;name\n;Ana\n')
    expect(await problemsOf({ kind: 'update-contacts', path: empty })).toEqual([
      'row 2, id: is required for every contact, but empty',
    ])
  })
})

describe('a constant', () => {
  test('is read like a cell, and in every row', async () => {
    const path = await fileOf(products)
    const file = { kind: 'products', path } as const
    expect(await bodiesOf({ ...file, mapping: toMapping({ set: ['status=archived'] }) })).toEqual([
      '{"status":"archived","name":"a","unit_label":"b"}',
    ])
    const wrong = toMapping({ set: ['status=archive', 'nam=x', 'id=1', 'plans='] })
    expect(await problemsOf({ ...file, mapping: wrong })).toEqual([
      '--set nam: is not a field of products; did you mean name?',
      '--set id: is a field that only the service writes',
      '--set plans: is a field that only the service writes',
      '--set status: archive is not one of active, archived; did you mean archived?',
    ])
  })
})

describe('a lookup', () => {
  const header = 'RUT;document;number;date;lines.1.name\n'
  const rows = ['76123456-k;7;1', '76.123.456-K;7;2', '9.999.999-9;7;3', '9.999.999-9;7;4', 'otro;7;5']
  const text = header + rows.map((row) => `${row};2026-03-25;x\n`).join('')
  const suppliers = 'RUT;supplier\r\n76.123.456-K;sup_1\r\n1-9;sup_2\r\n'

  test('finds tax ids however they are written, and lists each unknown value once', async () => {
    const path = await fileOf(text)
    const mapping = toMapping({
      map: ['RUT=supplier'],
      lookup: [`supplier=${await fileOf(suppliers, 'suppliers.csv')}`],
    })
    const check = await checkFile({ kind: 'retentions', path, mapping })
    const miss = { column: 'RUT', rule: 'lookup', message: 'is not in suppliers.csv' }
    expect(check.problems).toMatchObject([
      { ...miss, row: 4, value: '9.999.999-9', more: 1 },
      { ...miss, row: 6, value: 'otro' },
    ])
    expect(check).toMatchObject({ valid: 2, invalid: 3, stopped: false })
    const known = await fileOf(header + '076123456K;7;1;2026-03-25;x\n')
    expect(await bodiesOf({ kind: 'retentions', path: known, mapping })).toEqual([
      expect.stringContaining('"supplier":"sup_1"'),
    ])
  })

  describe('of tax ids without a hyphen', () => {
    const rut = '77.000.001-7 77.000.002-5 77.000.003-3 77.000.004-1 77.000.005-K 900.123.456-8'.split(' ')
    const digits = (id: string) => id.replaceAll(/[.-]/g, '')
    const bodies = (id: string) => digits(id).slice(0, -1)
    /** A file with these ids, and a lookup file with those. */
    async function fileWith(cells: readonly string[], keys: readonly string[], taxIds?: Mapping['taxIds']) {
      const suppliers = keys.map((key, index) => `${key};sup_${index + 1}\n`).join('')
      const lookups = { supplier: await fileOf(suppliers, 'suppliers.csv') }
      const lines = cells.map((cell, index) => `${cell};7;${index + 1};2026-03-25;x\n`)
      const mapping = { columns: { RUT: 'supplier' }, lookups, ...(taxIds && { taxIds }) }
      return { kind: 'retentions', path: await fileOf(header + lines.join('')), mapping } as const
    }
    const suppliersOf = async (file: Awaited<ReturnType<typeof fileWith>>) =>
      (await bodiesOf(file)).map((body) => (JSON.parse(body) as { supplier: string }).supplier)

    test('shows both readings, and one option decides', async () => {
      const folder = join(import.meta.dirname, 'files')
      const reading = { map: ['RUT=supplier', 'DV='], lookup: [`supplier=${join(folder, 'suppliers.csv')}`] }
      const path = join(folder, 'rut-without-digit.csv')
      const check = await checkFile({ kind: 'retentions', path, mapping: toMapping(reading) })
      expect(check.problems.map(toSentence)).toEqual([
        'row 2, RUT: 12345674 is in suppliers.csv only as 1.234.567-4. Say whether ids without a hyphen end with their check digit: --input taxIds=with-digit or taxIds=without-digit',
      ])
      expect(check.stopped).toBe(true)
      const without = toMapping({ ...reading, taxIds: 'without-digit' })
      expect(await problemsOf({ kind: 'retentions', path, mapping: without })).toEqual([
        'row 2, RUT: 12345674 is not in suppliers.csv; did you mean 1.234.567-4?',
      ])
      const withDigit = toMapping({ ...reading, taxIds: 'with-digit' })
      expect((await bodiesOf({ kind: 'retentions', path, mapping: withDigit }))[0]).toContain('sup_ana')
    })

    test('finds every form of an id by the option, and a digit behind a hyphen or a K needs none', async () => {
      const [plain, short] = [rut.map(digits), rut.map(bodies)]
      const all = rut.map((_, index) => `sup_${index + 1}`)
      for (const [cells, keys, form] of [
        [plain, rut, 'with-digit'],
        [rut, plain, 'with-digit'],
        [short, rut, 'without-digit'],
        [rut, short, 'without-digit'],
      ] as const)
        expect(await suppliersOf(await fileWith(cells, keys, form))).toEqual(all)
      const withK = await fileWith(['77000005k', '077.000.005K'], rut)
      expect(await suppliersOf(withK)).toEqual(['sup_5', 'sup_5'])
    })

    test.each<[string, string[], string[]]>([
      ['lacks its hyphen', ['770000017'], rut],
      ['lacks its digit', ['77000001', '77000002'], rut],
      ['lacks its hyphen in the lookup file', ['77.000.001-7'], ['770000017']],
      ['lacks its digit in the lookup file', ['77.000.001-7'], ['77000001']],
    ])('is asked for where an id %s', async (_, cells, keys) => {
      const { stopped, problems } = await checkFile(await fileWith(cells, keys))
      expect(stopped).toBe(true)
      expect(problems).toEqual([expect.objectContaining({ row: 2, rule: 'ambiguous' })])
      expect(problems[0]?.message).toContain(`only as ${keys[0]}. Say whether`)
    })

    test.each([
      ['eleven digits', '12345678901', '1.234.567.890-1', 'lookup'],
      ['six digits', '123456', '123.456-8', 'lookup'],
      ['six digits of which one could be a check digit', '123456', '12.345-6', 'lookup'],
      ['seven digits', '1234568', '123.456-8', 'ambiguous'],
    ])('takes %s for one only if a tax id has as many', async (_, cell, key, rule) => {
      const { problems } = await checkFile(await fileWith([cell], [key]))
      expect(problems).toMatchObject([{ row: 2, rule }])
    })

    test('finds no id in the form that the option rules out, nor one whose digit is another', async () => {
      const [first = '', second = ''] = rut
      for (const [cell, key, form] of [
        [bodies(first), first, 'with-digit'],
        [digits(first), first, 'without-digit'],
        ['77.000.001-8', first, 'without-digit'],
        ['77.000.001-8', first, undefined],
      ] as const)
        expect(await problemsOf(await fileWith([cell], [key, second], form))).toEqual([
          expect.stringMatching(/^row 2, RUT: .* is not in suppliers\.csv/),
        ])
      // Two that differ in their digits alone.
      const shared = await fileWith(['77000001'], [first, '77.000.001-8'], 'without-digit')
      expect(await problemsOf(shared)).toEqual([expect.stringContaining('is not in suppliers.csv')])
    })

    test.each([
      ['plain numbers', ['1000234', '1000235', '1000236', '123456789', '42', '12345674']],
      ['RFC', ['XAXX010101000', 'GODE561231GR8']],
      ['CNPJ and CPF', ['12.345.678/0001-95', '12345678000195', '123.456.789-09', '12345678909']],
      ['CUIT and RUC', ['20-12345678-9', '20123456789', '1790012345001']],
      ['words', ['ana', '12345674-a', '7-4']],
    ])('sees nothing of the kind in %s', async (_name, ids) => {
      expect(await suppliersOf(await fileWith(ids, ids))).toHaveLength(ids.length)
      const unknown = ids.slice(1)
      const check = await checkFile(await fileWith([...unknown, '7654329'], [ids[0] ?? '']))
      expect(check.problems.map(({ rule }) => rule)).toEqual(Array(unknown.length + 1).fill('lookup'))
    })
  })

  test.each([
    ['a;b;c\n1;2;3\n', /row 1: a lookup file has two columns/],
    ['a;b\n1;\n', /row 2: a lookup file has two columns/],
    ['1-9;sup_1\n1-9;sup_2\n', /row 2: 1-9 maps to sup_2, but in an earlier row to sup_1/],
  ])('in a file %j is refused', async (content, message) => {
    const mapping = { lookups: { supplier: await fileOf(content) }, columns: { RUT: 'supplier' } }
    await expect(problemsOf({ kind: 'retentions', path: await fileOf(text), mapping })).rejects.toThrow(
      message,
    )
  })

  test('may say the same of a value twice', async () => {
    const mapping = {
      lookups: { supplier: await fileOf('1-9;sup_1\n1-9;sup_1\n') },
      columns: { RUT: 'supplier' },
    }
    const path = await fileOf(header + '1-9;7;1;2026-03-25;x\n')
    expect((await bodiesOf({ kind: 'retentions', path, mapping }))[0]).toContain('sup_1')
  })

  test('for a field that the file does not have stops it', async () => {
    const mapping = { lookups: { status: await fileOf(suppliers) } }
    expect(await problemsOf({ kind: 'products', path: await fileOf(products), mapping })).toEqual([
      '--lookup status: is for a field that no column has',
    ])
  })
})

describe('a stored mapping', () => {
  test('finds its lookup files beside it, and options of the command line take precedence', async () => {
    const folder = await temporaryFolder()
    const path = join(folder, 'mapping.json')
    const stored = { set: { status: 'active' }, lookups: { name: 'names.csv' }, decimal: ',' }
    await writeFile(path, JSON.stringify({ columns: { a: 'name' }, ...stored }))
    const base = await readMapping(path)
    expect(base.lookups).toEqual({ name: join(folder, 'names.csv') })
    const given = { map: ['a=unit_label', 'b='], set: ['status=archived'], locale: 'es-MX' }
    expect(toMapping({ base, ...given })).toEqual({
      columns: { a: 'unit_label', b: null },
      set: { status: 'archived' },
      lookups: { name: join(folder, 'names.csv') },
      locale: 'es-MX',
    })
  })

  test('may begin with a byte order mark, and in another encoding than UTF-8 it is refused', async () => {
    const path = await fileOf('\ufeff{"columns": {"Razón": "name"}}', 'mapping.json')
    expect(await readMapping(path)).toEqual({ columns: { Razón: 'name' } })
    const old = await fileOf(Buffer.from('{"columns": {"Raz\xf3n": "name"}}', 'latin1'), 'mapping.json')
    await expect(readMapping(old)).rejects.toThrow(/mapping\.json is not UTF-8\. Save it as UTF-8/)
  })

  test('that can’t be meant is refused with what is wrong', async () => {
    await expect(readMapping(await fileOf('{', 'mapping.json'))).rejects.toThrow(
      /mapping\.json is not valid JSON/,
    )
    await expect(readMapping(await fileOf('{"colums": {}}', 'mapping.json'))).rejects.toThrow(/colums/)
    expect(() => toMapping({ map: ['Folio'] })).toThrow('--map Folio is not a pair such as "Folio=number"')
    expect(() => toMapping({ decimal: 'comma' })).toThrow(/decimal/)
  })

  test('for Chile reads the example beside it', async () => {
    const examples = join(import.meta.dirname, '../../../core/imports/examples')
    const file = {
      kind: 'retentions',
      path: join(examples, 'retentions-chile.csv'),
      mapping: await readMapping(join(examples, 'mapping-chile.json')),
    } as const
    const { totals, table } = await checkFile(file)
    expect(table.dialect.encoding).toBe('windows-1252')
    expect(totals).toMatchObject({
      rows: 3,
      changes: 2,
      sums: { 'lines.amount': '1591780', 'lines.tax': '230808.10' },
    })
    expect((await bodiesOf(file))[0]).toBe(
      '{"document":7,"number":1001,"date":"2026-04-03","supplier":"sup_0001","lines":[' +
        '{"name":"Honorarios","amount":1245890,"tax":180654.05},{"name":"Viáticos","amount":45890,"tax":6654.05}],"tax_percent":14.5}',
    )
  })
})
