import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { Refused, UnexpectedReply } from '../../../core/billing/errors.ts'
import { checkFile } from '../../../core/imports/check.ts'
import type { ImportFile } from '../../../core/imports/open-file.ts'
import { readMapping, type Mapping } from '../../../core/imports/mapping/mapping.ts'
import { openIdColumn } from '../../../core/imports/read-ids.ts'
import { outwardMessage } from '../../../core/runs/errors.ts'
import { fileOf, problemsOf, stage } from './csv-file.ts'

const email = 'juan.soto@ejemplo.cl'
const phone = '56912345678'
const retention = 'supplier,document,number,date,lines.1.name'
const addon = 'name,description,currency,amount'

type Case = [problem: string, kind: ImportFile['kind'], text: string, place: string, mapping?: Mapping]

const cases: Case[] = [
  ['number', 'addons', `${addon}\na,b,CLP,${email}\n`, 'row 2, amount'],
  ['two readings', 'addons', `${addon}\na,b,CLP,"912,345"\n`, 'row 2, amount'],
  ['scientific', 'addons', `${addon}\na,b,CLP,5.6912345678E+10\n`, 'row 2, amount'],
  ['fraction', 'addons', `${addon},duration_times\na,b,CLP,1,${phone}.5\n`, 'row 2, duration_times'],
  ['word', 'addons', `${addon},status\na,b,CLP,1,${email}\n`, 'row 2, status'],
  ['date', 'retentions', `${retention}\ns,7,1,${phone},x\n`, 'row 2, date'],
  [
    'JSON',
    'retentions',
    `supplier,document,number,date,lines\ns,7,1,2026-03-01,"[{""${email}"":1}]"\n`,
    'row 2, lines',
  ],
  ['e-mail', 'update-contacts', `id,email\ncon_1,${email} ${phone}\n`, 'row 2, email'],
  ['boolean', 'update-contacts', `id,invoicing\ncon_1,${email}\n`, 'row 2, invoicing'],
  ['too many cells', 'update-contacts', `id,email\ncon_1,${email},${phone}\n`, 'row 2'],
  ['no header', 'update-contacts', `con_1,${email},${phone}\ncon_2,b@ejemplo.cl,1\n`, 'row 1, column 1'],
  ['unnamed column', 'update-contacts', `id,email,\ncon_1,a@ejemplo.cl,${email}\n`, 'row 2, column 3'],
  [
    'rows that differ',
    'retentions',
    `supplier,document,number,date,line.name\ns,7,1,2026-03-01,x\ns,7,1,${email},y\n`,
    'row 3, date',
  ],
  ['constant', 'update-contacts', `id\ncon_1\n`, '--set email', { set: { email: `${email} ${phone}` } }],
]

/** The two messages of the error that a step throws for a file, and the one that Temporal gets. */
async function refusalOf(work: () => Promise<unknown>) {
  const error = await work().then(
    () => expect.fail('was not refused'),
    (error: Error) => error,
  )
  return { inside: error.message, outside: outwardMessage(error) }
}

test.each(cases)(
  '%s: the refusal names row, column and rule, and no value',
  async (_, kind, text, place, mapping) => {
    const path = await fileOf(text)
    const options = { kind, path, ...(mapping && { mapping }) }
    const { inside, outside } = await refusalOf(() => stage(options))
    expect(outside).toContain(`${place}: `)
    for (const value of [email, phone, '912,345', '912.345', '912345', '5.69'])
      expect(outside).not.toContain(value)
    // The person who has the file sees which value it was, except where a whole row is wrong.
    const [first = ''] = await problemsOf(options)
    expect(inside).toContain(first)
  },
)

test('a refused lookup names the row, and neither the tax id that was not found nor one that is near', async () => {
  const path = await fileOf(`${retention}\n76.123.456-7,7,1,2026-03-01,x\n`)
  const suppliers = join(dirname(path), 'suppliers.csv')
  await writeFile(suppliers, 'theirs,ours\n76.123.457-7,sup_1\n')
  const mapping = { lookups: { supplier: suppliers } }
  const { inside, outside } = await refusalOf(() => stage({ kind: 'retentions', path, mapping }))
  expect(inside).toMatch(/76\.123\.456-7 is not in suppliers\.csv; did you mean 76\.123\.457-7/)
  expect(outside).toContain('row 2, supplier: is not in the lookup file')
  expect(outside).not.toMatch(/76.123/)

  await writeFile(suppliers, '76.123.456-7,sup_1\n76.123.456-7,sup_2\n')
  const clash = await refusalOf(() => checkFile({ kind: 'retentions', path, mapping }))
  expect(clash.inside).toContain('76.123.456-7 maps to sup_2')
  expect(clash.outside).toContain('suppliers.csv, row 2: ')
  expect(clash.outside).not.toMatch(/76.123|sup_/)
})

test('a refused mapping, locale or column of ids is reported without its contents', async () => {
  const mapping = await fileOf(JSON.stringify({ columns: { [email]: 5 }, [phone]: 1 }), 'mapping.json')
  const wrong = await refusalOf(() => readMapping(mapping))
  expect(wrong.inside).toContain(email)
  expect(wrong.outside).toContain('columns')
  expect(wrong.outside).not.toMatch(/ejemplo|5691/)

  const path = await fileOf(`id\n501\n${email}\n`)
  const locale = await refusalOf(() => checkFile({ kind: 'delete-orders', path, mapping: { locale: email } }))
  expect(locale.inside).toContain(email)
  expect(locale.outside).not.toContain(email)

  const ids = await refusalOf(async () => Array.fromAsync((await openIdColumn({ path })).ids()))
  expect(ids.inside).toContain(`row 3 has ${email}`)
  expect(ids.outside).toContain('row 3')
  expect(ids.outside).not.toContain(email)
  const nameless = await fileOf(`${email}\n${email}\n`)
  const column = await refusalOf(() => openIdColumn({ path: nameless }))
  expect(column.inside).toContain(email)
  expect(column.outside).not.toContain(email)
})

test('an error of the service is reported without its messages, and without an id that came from a file', () => {
  const failure = {
    method: 'PATCH',
    path: `/contacts/${email}/`,
    status: 400,
    messages: [`${email} is taken.`],
  }
  for (const error of [
    new Refused({ ...failure, byService: true }),
    new UnexpectedReply({ ...failure, problem: 'notJson', why: 'a body that is not JSON' }),
  ]) {
    expect(error.message).toContain(`${email} is taken.`)
    expect(outwardMessage(error)).toContain('PATCH /contacts/.../ (400)')
    expect(outwardMessage(error)).not.toContain(email)
  }
})

test('control totals, which a run’s history holds, have no groups by a value that is not a document type', async () => {
  const path = await fileOf(`${retention}\ns,${phone},1,2026-03-01,x\ns,7,2,2026-03-01,x\n`)
  const { totals } = await checkFile({ kind: 'retentions', path })
  expect(Object.keys(totals.by?.values ?? {})).toEqual(['7', 'other'])
})
