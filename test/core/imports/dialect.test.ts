import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { detectDialect } from '../../../core/imports/csv/dialect.ts'
import { readRows } from '../../../core/imports/csv/read-rows.ts'
import { createRowScanner } from '../../../core/imports/csv/scanner.ts'
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
    const old = await fileOf(
      Buffer.concat([Buffer.from(rows), Buffer.from([0x41, 0xf1, 0x6f, 0x80, 0x3b, 0x61])]),
    )
    expect((await detectDialect(old)).encoding).toBe('windows-1252')
    expect((await read(old)).at(-1)?.cells).toEqual(['Año€', 'a'])
    // Half a letter of UTF-8 is a letter of Windows-1252.
    const cut = await fileOf(Buffer.concat([Buffer.from(rows), Buffer.from([0x61, 0x3b, 0xc3])]))
    expect((await read(cut)).at(-1)?.cells).toEqual(['a', 'Ã'])
    const utf8 = await fileOf(`${rows}Año€;a`)
    expect((await detectDialect(utf8)).encoding).toBe('utf-8')
    expect((await read(utf8)).at(-1)?.cells).toEqual(['Año€', 'a'])
  })

  test('keeps its mark and its line ends, and the mark is no part of the first name', async () => {
    const path = await fileOf('\ufeffid;x\r\n1;2\r\n')
    expect(await detectDialect(path)).toEqual({
      delimiter: ';',
      encoding: 'utf-8',
      bom: true,
      lineEnd: '\r\n',
    })
    expect((await read(path))[0]?.cells[0]).toBe('id')
  })
})

describe('what is no CSV file is answered with what to do', () => {
  const zip = (inside: string) => Buffer.from(`PK\u0003\u0004\u0014\u0000\u0000\u0000${inside}`, 'latin1')
  test.each([
    ['.xlsx', zip('[Content_Types].xml'), /is a workbook .*Save as.*CSV UTF-8/],
    ['.ods', zip('mimetypeapplication/vnd.oasis.opendocument.spreadsheet'), /is a workbook/],
    ['.xls', Buffer.from('d0cf11e0a1b11ae10000', 'hex'), /is a workbook \(\.xls\).*Save as/],
    ['.zip', zip('retentions.csv'), /is a zip archive\. Unpack it/],
    ['.gz', gzipSync('a;b\n1;2\n'), /compressed \(gzip\)/],
    ['a web page called .xls', Buffer.from('\n<html><table>'), /is a web page/],
    ['a PDF', Buffer.from('%PDF-1.7'), /is a PDF/],
    ['UTF-16', Buffer.from('\ufeffa;b\n1;2\n', 'utf16le'), /UTF-16.*CSV UTF-8/],
    ['binary', Buffer.from([0x61, 0x3b, 0x00, 0x01]), /is binary/],
    ['binary further on', Buffer.concat([Buffer.alloc(100_000, 'a;b\n'), Buffer.alloc(1)]), /is binary/],
    ['an old code page', Buffer.from([0x61, 0x3b, 0x90, 0x0a]), /is neither UTF-8 nor Windows-1252/],
    ['nothing', Buffer.alloc(0), /is empty/],
    ['blanks', Buffer.from('\ufeff \n\n'), /is empty/],
    ['a header', Buffer.from('name;unit_label;status\n\n'), /has a header but no rows/],
    [
      'an open quote',
      Buffer.from('name;unit_label\n"a;b\nc;d\n'),
      /row 2 opens a quote that is never closed/,
    ],
    [
      'text after a quote',
      Buffer.from('name;unit_label\n"a"b;c\n'),
      /row 2 has text right after a closing quote/,
    ],
  ])('%s', async (_what, content, sentence) => {
    await expect(problemsOf({ kind: 'products', path: await fileOf(content) })).rejects.toThrow(sentence)
    await expect(problemsOf({ kind: 'products', path: await fileOf(content) })).rejects.toMatchObject({
      name: 'UnreadableFileError',
    })
  })

  test('no file at all', async () => {
    const path = join(await temporaryFolder(), 'gone.csv')
    await expect(problemsOf({ kind: 'products', path })).rejects.toThrow(/gone\.csv cannot be read: ENOENT/)
  })

  test('a cell of 5 MB', async () => {
    const path = await fileOf(`name;unit_label\na;b\n"${'x'.repeat(5_000_000)}";c\n`)
    await expect(problemsOf({ kind: 'products', path })).rejects.toThrow(
      /row 3 is longer than a million characters/,
    )
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
  test('are counted as a spreadsheet does, and lines as an editor does', async () => {
    const path = await fileOf('a;b\r\n"x\r\ny";1\r\n\r\n;;\n2;"un ""dos"""\r3;Taller "Sur"\n')
    expect(await read(path)).toEqual([
      { row: 1, line: 1, cells: ['a', 'b'] },
      { row: 2, line: 2, cells: ['x\r\ny', '1'] },
      { row: 5, line: 6, cells: ['2', 'un "dos"'] },
      { row: 6, line: 7, cells: ['3', 'Taller "Sur"'] },
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
