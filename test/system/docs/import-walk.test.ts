import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createEncoder } from '../../../core/imports/csv/encoding.ts'
import { openTestWorker, openWorld, startCommand, type World } from '../export/world.ts'

const read = (path: string) => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8')

let world: World
let desk: string
let worker: Awaited<ReturnType<typeof openTestWorker>>

beforeAll(async () => {
  world = await openWorld({ counts: { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 } })
  worker = await openTestWorker(world, { BILLING_SETTLE_SECONDS: '0.1' })
  desk = await mkdtemp(join(tmpdir(), 'walk-'))
})
afterAll(async () => {
  await worker.stop()
  await world.close()
  await rm(desk, { recursive: true, force: true })
})

/** A page's own files and commands, as somebody who follows it has them. */
async function pageOf(path: string) {
  const text = await read(path)
  const blocks = [...text.matchAll(/```(?<language>\w*)\n(?<code>.*?)\n```/gs)].map(({ groups }) => ({
    language: groups?.['language'] ?? '',
    code: groups?.['code'] ?? '',
  }))
  const commands = blocks
    .flatMap(({ language, code }) => (language === 'sh' ? code.split('\n') : []))
    .filter((line) => line.startsWith('npx connector import '))
    .map(toWords)
  const fileThatBegins = (header: string) => blocks.find(({ code }) => code.startsWith(header))?.code ?? ''
  return { commands, fileThatBegins }
}

/** Of the shell's rules those that the pages use: blanks part words, quotes hold them together, # ends them. */
function toWords(line: string): string[] {
  const [command = ''] = line.split(/\s+#\s/)
  const words = [...command.matchAll(/(?:"[^"]*"|[^\s"])+/g)].map(([word]) => word.replaceAll('"', ''))
  // The worker of these tests serves what the page would have done with one of its own.
  return words.slice(2).filter((word) => word !== '--local')
}

const save = (name: string, text: string) => writeFile(join(desk, name), text)
const saveAsExcelDoes = (name: string, text: string) =>
  writeFile(join(desk, name), createEncoder('windows-1252')(`${text.replaceAll('\n', '\r\n')}\r\n`))

const run = (words: readonly string[]) =>
  startCommand(world, [...words, '--json'], {
    env: { INIT_CWD: desk, BILLING_SETTLE_SECONDS: '0.1' },
  }).ended

interface Told {
  verdict: string
  summary: string
}

test(
  'the walkthrough of docs/imports.md leads from a sheet of 30 rows to a proven import',
  { tags: ['long'] },
  async () => {
    const { commands, fileThatBegins } = await pageOf('docs/imports.md')
    const [header = '', row = ''] = fileThatBegins('Folio;').split('\n')
    const rows = Array.from({ length: 30 }, (_, index) =>
      row
        .replace('2001', String(2001 + index))
        .replace(
          '14.500,50',
          `${(14_500 + 145 * index).toLocaleString('es-CL', { useGrouping: 'always' })},50`,
        ),
    )
    await saveAsExcelDoes('retenciones.csv', [header, ...rows].join('\n'))
    const suppliers = await read('core/imports/examples/suppliers-chile.csv')
    await save('suppliers.csv', suppliers)
    const mapping = JSON.parse(await read('core/imports/examples/mapping-chile.json')) as object
    await save('mapping.json', JSON.stringify({ ...mapping, lookups: { supplier: 'suppliers.csv' } }))
    const [rehearsal = [], real = []] = commands
    const dry = await run(rehearsal)
    expect(dry.code, dry.stderr).toBe(0)
    expect(JSON.parse(dry.stdout) as Told).toMatchObject({ verdict: 'dryRun' })
    const { code, stdout, stderr } = await run(real)
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'proven', counts: { done: 30 } })
  },
)

test(
  'la guía rápida lleva de sus propios archivos a una importación comprobada',
  { tags: ['long'] },
  async () => {
    const { commands, fileThatBegins } = await pageOf('docs/guia-rapida.md')
    // Two of its rows are in docs/imports.md too, and were just imported.
    await saveAsExcelDoes('retenciones.csv', fileThatBegins('Folio;').replaceAll(/^20/gm, '30'))
    await saveAsExcelDoes('proveedores.csv', fileThatBegins('RUT;'))
    await save('mapping.json', fileThatBegins('{'))
    expect(commands).toHaveLength(2)
    const [rehearsal = [], real = []] = commands
    expect((await run(rehearsal)).code).toBe(0)
    const { code, stdout, stderr } = await run(real)
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout) as Told).toMatchObject({
      verdict: 'proven',
      summary: '2 of 2 retentions done; proven by audit',
    })
  },
)
