import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkFile } from '../../../core/imports/check.ts'
import { refusalOf } from '../../../core/imports/cells/refused.ts'
import type { ImportFile } from '../../../core/imports/open-file.ts'
import { toMapping } from '../../../core/imports/mapping/mapping.ts'
import { toSentence } from '../../../core/imports/problems.ts'
import { bodiesOf, fileOf, problemsOf, storeInput } from './csv-file.ts'
import { xlsxOf } from './xlsx-file.ts'

const folder = join(import.meta.dirname, 'files')
const header = ['name', 'unit_label']
const retention = 'supplier;document;number;date;lines.1.name;lines.1.amount\n'

/** What is wrong with a workbook, read as an import reads it. */
async function problemsOfWorkbook(
  bytes: Uint8Array,
  { name = 'planilla.xlsx', ...file }: Omit<ImportFile, 'path'> & { name?: string },
) {
  const files = { file: await fileOf(bytes, name), mapping: file.mapping ?? {} }
  const check = await checkFile({ ...file, path: (await storeInput(files)).path })
  return { name: check.file, problems: check.problems.map(toSentence), valid: check.valid }
}

describe('what a spreadsheet shows instead of a value', () => {
  test.each(
    (
      '## ######## #ERROR! #N/A #N/D #N/B #I/T #Н/Д #NV #YOK #REF! #¡REF! ¡#REF! #BEZUG! #DIV/0! #¡DIV/0! #DEEL/0! ' +
      '#VALOR! #¡VALOR! #WERT! #VALEUR! #ЗНАЧ! #ÉRTÉK! #NAME? #¿NOMBRE? #NOMBRE? #NOME? #NÉV? #NUM! #NULL! #SPILL! ' +
      '#DESBORDAMIENTO! #¡DESBORDAMIENTO! #DESPEJAR! #CÁLC! #BLOCKED! #BUSY! #CONNECT! #FIELD! #UNKNOWN! #PYTHON! ' +
      '#GETTING_DATA #OBTENIENDO_DATOS Err:502 Err:508 Error:511 Erro:502 Fehler:502 Loading... Cargando... ' +
      'Cargando… Carregando... Loading_data... Cargando_datos… ' +
      '#N/A_N/A #VALEUR\u00a0!'
    )
      .split(' ')
      .map((text) => text.replace(/_(?=[dN])/, ' ')),
  )('is refused in a column of any type: %s', async (text) => {
    const path = await fileOf(
      'name;description;currency;amount;sku\n' +
        `${text};d;CLP;10;s\nn;d;CLP;${text};s\nn;d;CLP;10;${text}\nn;d;CLP;10;s\n`,
    )
    const found = await problemsOf({ kind: 'addons', path })
    expect(found.map((sentence) => sentence.slice(0, sentence.indexOf(':')))).toEqual([
      'row 2, name',
      'row 3, amount',
      'row 4, sku',
    ])
  })

  test.each(
    '# #1 #A12 #FF0000 #promo #Promo! Nº5 C# Error 502 Caja:502 Cargando Wait... etc… !! N/A - 100% S/N'.split(
      ' ',
    ),
  )('is not seen in %s', (text) => {
    expect(refusalOf(text, { meta: { kind: 'text' } })).toBe(undefined)
  })

  test('is refused in a file of Google Sheets with what to do', async () => {
    const path = join(folder, 'hashes-and-google-error.csv')
    expect(await problemsOf({ kind: 'addons', path })).toEqual([
      'row 2, sku: ######## is how a spreadsheet shows a value in a column that is too narrow. Widen the column, and save the file again',
      'row 3, description: #ERROR! is an error of the spreadsheet. Fix its formula, or enter the value',
    ])
  })
})

describe('a letter that nobody sees', () => {
  const hidden = {
    'zero-width space': '\u200b',
    'soft hyphen': '\u00ad',
    joiner: '\u200d',
    'left-to-right mark': '\u200e',
    'right-to-left mark': '\u200f',
    embedding: '\u202a',
    'word joiner': '\u2060',
    'byte order mark': '\ufeff',
    'variation selector': '\ufe0f',
    'hangul filler': '\u3164',
    'braille blank': '\u2800',
  }

  test.each(Object.entries(hidden))('is refused in ids, numbers and words: %s', async (_name, letter) => {
    const path = await fileOf(`${retention}sup${letter}_1;7;1;2026-03-25;x;1${letter}0\n`)
    expect(await problemsOf({ kind: 'retentions', path })).toEqual([
      expect.stringMatching(
        /^row 2, supplier: .* has an invisible letter \(U\+\w{4}\); did you mean sup_1\?$/u,
      ),
      expect.stringMatching(/^row 2, lines.1.amount: .* has an invisible letter .*; did you mean 10\?$/u),
    ])
    const words = await fileOf(`name;unit_label;status\na;b;act${letter}ive\n`)
    expect(await problemsOf({ kind: 'products', path: words })).toEqual([
      expect.stringMatching(/did you mean active\?$/),
    ])
  })

  test('is refused in ids that a lookup file or JSON gives, and so are other spaces and accents stored apart', async () => {
    const mapping = { lookups: { supplier: await fileOf('1-9;sup_1\u200b\n') } }
    const path = await fileOf(`${retention}1-9;7;1;2026-03-25;x;1\n`)
    expect(await problemsOf({ kind: 'retentions', path, mapping })).toEqual([
      expect.stringContaining('1-9 is looked up as sup_1\u200b, which has an invisible letter (U+200B)'),
    ])
    const json = await fileOf('id;lines\nsub_1;"[{""plan"":""pl_1\u00ad"",""quantity"":1}]"\n')
    expect(await problemsOf({ kind: 'update-subscriptions', path: json })).toEqual([
      expect.stringContaining('1.plan has an invisible letter (U+00AD); did you mean pl_1?'),
    ])
    const others = await fileOf('id;customer\ncon_1;cus\u00a01\ncon_2;Pen\u0303a\n')
    expect(await problemsOf({ kind: 'update-contacts', path: others })).toEqual([
      expect.stringMatching(/customer: cus.1 has an invisible letter \(U\+00A0\); did you mean cus 1\?$/),
      expect.stringMatching(/has an accent that is stored as a letter of its own; did you mean Peña\?$/),
    ])
  })

  test('stays in texts for people, where emoji and Arabic need it, but a mark of UTF-8 does not', async () => {
    const name = '👩\u200d💻 ❤\ufe0f عربي\u200f'
    const path = await fileOf(`name;unit_label\n${name};mes\n`)
    expect(JSON.parse((await bodiesOf({ kind: 'products', path }))[0] ?? '')).toMatchObject({ name })
    const joined = await fileOf('name;unit_label\nRep A;mes\n\ufeffRep B;mes\n')
    expect(await problemsOf({ kind: 'products', path: joined })).toEqual([
      expect.stringMatching(/^row 3, name: .*\(U\+FEFF\); did you mean Rep B\?$/u),
    ])
  })

  test('alone makes a cell empty, and a row of such cells blank', async () => {
    const path = await fileOf('name;unit_label\n\u200b;\u00ad\u00a0\na;\u200b\n')
    expect(await problemsOf({ kind: 'products', path })).toEqual([
      'row 3, unit_label: is required for every product, but empty',
    ])
  })
})

describe('a header', () => {
  test.each([
    ['na\u200bme', 'unit\u00ad_label'],
    ['\u200ename', '\u2060unit_label '],
    ['\u00a0NAME', 'unit_\u200clabel\ufe0f'],
  ])('is known without the letters that nobody sees: %j, %j', async (...names) => {
    const path = await fileOf(`${names.join(';')}\na;b\n`)
    expect(await bodiesOf({ kind: 'products', path })).toEqual(['{"name":"a","unit_label":"b"}'])
  })

  test('of several lines is known by the --map that the message prints', async () => {
    const sheet = new Uint8Array(await readFile(join(folder, 'header-with-line-break.xlsx')))
    const first = await problemsOfWorkbook(sheet, { kind: 'products' })
    const printed = first.problems.flatMap((sentence) => /--map '([^']*)=\.\.\.'/.exec(sentence)?.[1] ?? [])
    expect(printed).toEqual(['Nombre del producto', 'Unidad de medida'])
    const mapping = toMapping({ map: [`${printed[0]}=name`, `${printed[1]}=unit_label`] })
    expect(await problemsOfWorkbook(sheet, { kind: 'products', mapping })).toMatchObject({
      problems: [],
      valid: 1,
    })
  })

  test.each([
    ['Descripción'.normalize('NFD'), 'Descripción'],
    ['Descripción', 'Descripción'.normalize('NFD')],
    ['Razón\u00a0 social', 'razón social'],
    ['"Razón\r\nsocial"', 'Razón social'],
    ['Razón social', 'Razón\nsocial'],
  ])('%j is the column %j of a mapping', async (column, mapped) => {
    const path = await fileOf(`${column};unit_label\na;b\n`)
    const mapping = { columns: { [mapped]: 'name' } }
    expect(await bodiesOf({ kind: 'products', path, mapping })).toEqual(['{"name":"a","unit_label":"b"}'])
  })
})

describe('UTF-8 that was read in another encoding before it was saved', () => {
  test.each([
    ['MuÃ±oz', 'Muñoz'],
    ['NIÃ‘O', 'NIÑO'],
    ['RazÃ³n â€“ PerÃº', 'Razón – Perú'],
    ['25Â°C', '25°C'],
    ['Mu√±oz JOS√â', 'Muñoz JOSÉ'],
    ['25¬∞C', '25°C'],
    ['Mu├▒oz Jos├®', 'Muñoz José'],
  ])('is refused with the word that was meant: %s', async (text, meant) => {
    const path = await fileOf(`name;unit_label\n${text};mes\n`)
    expect(await problemsOf({ kind: 'products', path })).toEqual([
      `row 2, name: ${text} looks like UTF-8 read in another encoding (--input encoding=utf-8 takes it as it is); did you mean ${meant}?`,
    ])
    const rows = [header, [text, 'mes']]
    const sheet = xlsxOf([{ rows }])
    expect((await problemsOfWorkbook(sheet, { kind: 'products' })).problems).toHaveLength(1)
    const mapping = { encoding: 'utf-8' } as const
    expect(await bodiesOf({ kind: 'products', path, mapping })).toEqual([expect.stringContaining(text)])
  })

  test.each(['“IRMÃ”', 'AMANHÃ… NÃO', 'MAÇÃ\u00a0VERDE', 'Ângela Ärger', '√2 ≈ 1,4 ±1', '├── Plan', 'SÃO'])(
    'is not seen in %s',
    async (text) => {
      const path = await fileOf(`name;unit_label\n${text};b\n`)
      expect(await problemsOf({ kind: 'products', path })).toEqual([])
    },
  )

  test('has letters that are lost, which is said', async () => {
    const path = await fileOf('name;unit_label\nMu\ufffdoz;b\n')
    expect(await problemsOf({ kind: 'products', path })).toEqual([
      'row 2, name: Mu\ufffdoz has \ufffd where a program could not read a letter. Enter the letter',
    ])
  })
})

test.each(['.xlsx', '.csv'])(
  'a file whose name is as long as a name may be is imported: %s',
  async (extension) => {
    const rows = [header, ['a', 'b']]
    const bytes =
      extension === '.xlsx' ? xlsxOf([{ rows }]) : Buffer.from(rows.map((row) => row.join()).join('\n'))
    for (const letter of ['n', 'ñ']) {
      const name = letter.repeat(letter === 'n' ? 250 : 125) + extension
      const read = await problemsOfWorkbook(bytes, { kind: 'products', name })
      expect(read).toMatchObject({ problems: [], valid: 1 })
      expect(read.name).toMatch(new RegExp(`^${letter}{100,}…\\${extension}$`))
    }
  },
)
