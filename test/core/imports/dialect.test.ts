import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { detectDialect } from '../../../core/imports/csv/table.ts'
import { createEncoder, encodings } from '../../../core/imports/csv/encoding.ts'
import { createRowScanner, readRows } from '../../../core/imports/csv/rows.ts'
import { bodiesOf, fileOf, problemsOf, temporaryFolder } from './csv-file.ts'

const read = async (path: string) => Array.fromAsync(readRows({ path, dialect: await detectDialect(path) }))

describe('how a file is written', () => {
  test.each([
    [',', 'a,b,c\n1,2,3\n'],
    [';', 'a;b;c\n1,5;2;3\n'],
    ['\t', 'a\tb\n1,5\tx;y\n'],
    ['|', 'a|b\n1|2\n'],
    [';', 'Monto, neto;IVA\n12,50;3\n'],
    [',', 'id\nord_1\n'],
    [',', '"a;b",c\n"1;2",3\n'],
    [';', 'a;b'],
  ])('has the delimiter %j where it begins with %j', async (delimiter, text) => {
    expect((await detectDialect(await fileOf(text))).delimiter).toBe(delimiter)
  })

  test('is Windows-1252 by a single letter in its last row, and UTF-8 otherwise', async () => {
    const rows = 'name;unit_label\n' + 'Plan;mes\n'.repeat(20_000)
    const last = Buffer.from([0x41, 0xf1, 0x6f, 0x80, 0x3b, 0x61])
    const old = await fileOf(Buffer.concat([Buffer.from(rows), last]))
    expect((await detectDialect(old)).encoding).toBe('windows-1252')
    expect((await read(old)).at(-1)?.cells).toEqual(['Año€', 'a'])
    const utf8 = await fileOf(`${rows}Año€;a`)
    expect((await detectDialect(utf8)).encoding).toBe('utf-8')
    expect((await read(utf8)).at(-1)?.cells).toEqual(['Año€', 'a'])
  })

  test('keeps its mark and its line ends, and the mark is not part of the first name', async () => {
    const path = await fileOf('\ufeffid;x\r\n1;2\r\n')
    const dialect = { delimiter: ';', encoding: 'utf-8', bom: true, lineEnd: '\r\n' }
    expect(await detectDialect(path)).toEqual(dialect)
    expect((await read(path))[0]?.cells[0]).toBe('id')
  })
})

describe('an encoding that is in doubt', () => {
  const folder = join(import.meta.dirname, 'files')
  const spanish = 'Muñoz Asesoría jurídica Reparación diseño gráfico útiles JOSÉ'
  const table = (text: string) => `name;unit_label\nPlan;mes\n${text};mes\n`

  test('because its lines end with CR and it has letters of Mac Roman is refused until it is named', async () => {
    const file = { kind: 'retentions', path: join(folder, 'mac-roman-cr.csv') } as const
    await expect(problemsOf(file)).rejects.toThrow(
      'The encoding of mac-roman-cr.csv is not clear: row 2 reads "Asesor’a" in windows-1252, "Asesoría" in macintosh, "AsesorÆa" in cp850. ' +
        'Name the right one with --input encoding=, or save the file as "CSV UTF-8".',
    )
    const bodies = await bodiesOf({ ...file, mapping: { encoding: 'macintosh' } })
    expect(bodies[0]).toContain('"name":"Asesoría jurídica Muñoz y Peña Ltda."')
    // “av™” is a word of Windows-1252, too: only its line ends tell.
    const word = createEncoder('macintosh')('name;unit_label\ravô;mes\r')
    const other = { kind: 'products', path: await fileOf(word) } as const
    await expect(problemsOf(other)).rejects.toThrow(/reads "av™" in windows-1252.*, "avô" in macintosh/)
    const city = createEncoder('macintosh')(table('Bogotá'))
    await expect(problemsOf({ kind: 'products', path: await fileOf(city) })).rejects.toThrow(
      /row 3 reads "Bogot‡" in windows-1252, "Bogotá" in macintosh/,
    )
    const ascii = await fileOf('name;unit_label\rPlan;mes\r')
    expect((await detectDialect(ascii)).encoding).toBe('utf-8')
  })

  test('because some rows are UTF-8 and one is not is refused with that row and both readings', async () => {
    const file = { kind: 'retentions', path: join(folder, 'utf8-with-one-1252-row.csv') } as const
    const refusal = problemsOf(file)
    await expect(refusal).rejects.toThrow(
      'utf8-with-one-1252-row.csv has text in UTF-8, but row 5 is not: ' +
        'row 2 reads "Asesoría" in utf-8, "AsesorÃ\u00ada" in windows-1252; ' +
        'row 5 reads "Electr�nica" in utf-8, "Electrónica" in windows-1252.',
    )
    await expect(refusal).rejects.toMatchObject({
      withoutValues: expect.not.stringContaining('Electr') as string,
    })
    await expect(problemsOf({ ...file, mapping: { encoding: 'utf-8' } })).rejects.toThrow('row 5 is not')
    const bodies = await bodiesOf({ ...file, mapping: { encoding: 'windows-1252' } })
    expect(bodies[3]).toContain('"name":"Electrónica Ibáñez"')
  })

  test.each([
    ['a letter cut in two at its end, after others', Buffer.from(table('Muñoz') + 'Ibá').subarray(0, -1)],
    ['a mark of UTF-8', Buffer.from(`\xef\xbb\xbf${table('Mu\xf1oz')}`, 'latin1')],
  ])('because of %s is refused', async (_what, content) => {
    const refused = problemsOf({ kind: 'products', path: await fileOf(content) })
    await expect(refused).rejects.toThrow(/has text in UTF-8, but row \d is not/)
  })

  test('is settled by encoding=utf-8 only where the file is UTF-8', async () => {
    const path = await fileOf(Buffer.from(table('Mu\xf1oz'), 'latin1'))
    await expect(problemsOf({ kind: 'products', path, mapping: { encoding: 'utf-8' } })).rejects.toThrow(
      'file.csv is not UTF-8: row 3 reads "Mu�oz" in utf-8, "Muñoz" in windows-1252.',
    )
  })

  test.each(encodings.filter((encoding) => !['utf-8', 'windows-1252'].includes(encoding)))(
    'is not taken for Windows-1252 where it is %s, and is read once it is named',
    async (encoding) => {
      for (const text of ['Muñoz', 'niño y niña', spanish, 'José', 'García']) {
        const path = await fileOf(createEncoder(encoding)(table(text)))
        await expect(problemsOf({ kind: 'products', path })).rejects.toThrow(/is not clear: row 3 reads/)
        const [, body] = await bodiesOf({ kind: 'products', path, mapping: { encoding } })
        expect(body).toContain(`"name":"${text}"`)
      }
    },
  )

  test.each([
    spanish,
    'O’Higgins',
    'lunes – viernes en Peñalolén',
    '«CAFÉ» “Sur” 25°C 10 µg 5½ m² 100 € · Nº 7 1ª D’Angelo, Díaz',
    'MUñOZ PéREZ GONZáLEZ',
    'MANUTENÇÃO de SERVIÇOS: você, avô, às, “IRMÃ”, AMANHÃ…',
    'Ancho×Alto, Peñalolén',
    'MAÇÃ\u00a0VERDE, SÃO JOÃO',
    'François Köhler, Søren, Strauß y Benoît',
    'S.A.\u00a0de\u00a0C.V. Ibáñez',
  ])('is not seen in Windows-1252: %s', async (text) => {
    const path = await fileOf(createEncoder('windows-1252')(table(text)))
    const [, body] = await bodiesOf({ kind: 'products', path })
    expect(JSON.parse(body ?? '')).toMatchObject({ name: text })
  })

  test('is said for UTF-16 without a mark, too', async () => {
    const path = await fileOf(Buffer.from(table('a'), 'utf16le'))
    await expect(problemsOf({ kind: 'products', path })).rejects.toThrow(/is text in UTF-16/)
  })
})

describe('what is no CSV file is answered with what to do', () => {
  const zip = (inside: string) => Buffer.from(`PK\u0003\u0004\u0014\u0000\u0000\u0000${inside}`, 'latin1')
  test.each<[string, string | Buffer, RegExp]>([
    ['.xlsx', zip('[Content_Types].xml'), /is a workbook .*Save as.*CSV UTF-8/],
    ['.ods', zip('mimetypeapplication/vnd.oasis.opendocument.spreadsheet'), /is a workbook/],
    ['.xls', Buffer.from('d0cf11e0a1b11ae10000', 'hex'), /\.xls\), or one .* by a password\. .*Save as/],
    ['.zip', zip('retentions.csv'), /is a zip archive\. Unpack it/],
    ['.gz', gzipSync('a;b\n1;2\n'), /compressed \(gzip\)/],
    ['a web page called .xls', '\n<html><table>', /is a web page/],
    ['a web page that begins with its style', '<style>td{}</style><table>', /is a web page/],
    ['a web archive called .xls', 'MIME-Version: 1.0\nContent-Type: x', /is a web page/],
    ['a PDF', '%PDF-1.7', /is a PDF/],
    ['UTF-16', Buffer.from('\ufeffa;b\n1;2\n', 'utf16le'), /UTF-16.*CSV UTF-8/],
    ['binary', Buffer.from([0x61, 0x3b, 0x00, 0x01]), /is binary/],
    ['binary further on', Buffer.concat([Buffer.alloc(100_000, 'a;b\n'), Buffer.alloc(1)]), /is binary/],
    ['nothing', Buffer.alloc(0), /is empty/],
    ['blanks', '\ufeff \n\n', /is empty/],
    ['a header', 'name;unit_label;status\n\n', /has a header but no rows/],
    ['an open quote', 'name;unit_label\n"a;b\nc;d\n', /row 2 opens a quote that is never closed/],
    ['text after a quote', 'name;unit_label\n"a"b;c\n', /row 2 has text right after a closing quote/],
  ])('%s', async (_what, content, sentence) => {
    const refused = problemsOf({ kind: 'products', path: await fileOf(content) })
    const message = expect.stringMatching(sentence) as unknown
    await expect(refused).rejects.toMatchObject({ name: 'InvalidFile', message })
  })

  test('no file at all', async () => {
    const path = join(await temporaryFolder(), 'gone.csv')
    await expect(problemsOf({ kind: 'products', path })).rejects.toThrow(/gone\.csv cannot be read: ENOENT/)
  })

  test('more rows than a spreadsheet has, without reading on', async () => {
    const path = join(await temporaryFolder(), 'long.csv')
    const file = createWriteStream(path)
    file.write('name;unit_label\n')
    for (let written = 0; written < 2_000_000; written += 100_000)
      if (!file.write('a;b\n'.repeat(100_000))) await once(file, 'drain')
    file.end()
    await once(file, 'finish')
    const rows = readRows({ path, dialect: await detectDialect(path) })
    let last = 0
    const all = (async () => {
      for await (const { row } of rows) last = row
    })()
    await expect(all).rejects.toThrow('long.csv has more than 1,048,575 rows')
    expect(last).toBe(1_048_576)
  })
})

describe('rows', () => {
  test('are counted as a spreadsheet does, whatever lines their cells have', async () => {
    const path = await fileOf('a;b\r\n"x\r\ny";1\r\n\r\n;;\n2;"un ""dos"""\r3;Taller "Sur"\n')
    expect(await read(path)).toEqual([
      { row: 1, cells: ['a', 'b'] },
      { row: 2, cells: ['x\r\ny', '1'] },
      { row: 5, cells: ['2', 'un "dos"'] },
      { row: 6, cells: ['3', 'Taller "Sur"'] },
    ])
  })

  test('are the same wherever a chunk ends', () => {
    const part = fc.constantFrom('a', '"', '""', '";"', ';', '\r', '\n', '\r\n', 'ñ')
    const chunks = fc.array(
      fc.array(part, { maxLength: 4 }).map((parts) => parts.join('')),
      { maxLength: 8 },
    )
    const scan = (texts: readonly string[]) => {
      const scanner = createRowScanner({ delimiter: ';' })
      const all = [...texts.map((text) => scanner.push(text)), scanner.end()]
      const failed = all.find((scanned) => scanned.failed !== undefined)
      const until = failed === undefined ? all : all.slice(0, all.indexOf(failed) + 1)
      return { rows: until.flatMap(({ rows }) => rows), failed: failed?.failed }
    }
    fc.assert(
      fc.property(chunks, (texts) => {
        expect(scan(texts)).toEqual(scan([texts.join('')]))
      }),
      { seed: 20261121, numRuns: 2_000 },
    )
  })

  test('that are not as long as the header are each named, and empty cells at the end don’t count', async () => {
    const path = await fileOf('name;unit_label\na;b;;\nc\nd;e;f\n')
    expect(await problemsOf({ kind: 'products', path })).toEqual([
      expect.stringMatching(/^row 3: has 1 cell, but the header has 2/),
      expect.stringMatching(/^row 4: has 3 cells, but the header has 2/),
    ])
  })

  test('may have nothing in a column without a name', async () => {
    const path = await fileOf('name;unit_label;\na;b;\nc;d;e\n')
    expect(await problemsOf({ kind: 'products', path })).toEqual([
      expect.stringMatching(/^row 3, column 3: e is in a column without a name/),
    ])
    expect(await bodiesOf({ kind: 'products', path: await fileOf('name;unit_label;\na;b;\n') })).toEqual([
      '{"name":"a","unit_label":"b"}',
    ])
  })
})
