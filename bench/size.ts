// What the code weighs, by room: npm run size. The figures stand in docs/benchmarks.md.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('../', import.meta.url))
const { values } = parseArgs({ options: { json: { type: 'boolean' } } })

const paths = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean)
const textOf = (path: string) => readFileSync(`${root}${path}`, 'utf8')
const linesOf = (text: string) => text.split('\n').length - 1
const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0)

const rooms = ['activities', 'bench', 'core', 'docs', 'sandbox', 'scripts', 'worker', 'workflows']
const code = paths.filter((path) => /\.(ts|js|mjs)$/.test(path) && rooms.includes(path.split('/')[0] ?? ''))
const texts = new Map(code.map((path) => [path, textOf(path)]))
const roomOf = (path: string) =>
  path
    .split('/')
    .slice(0, path.startsWith('core/') ? 2 : 1)
    .join('/')

const byRoom = Object.entries(Object.groupBy(code, roomOf)).map(([room, files = []]) => ({
  room,
  lines: sum(files.map((path) => linesOf(texts.get(path) ?? ''))),
  files: files.length,
}))

const importPattern = /^(?:import|export) [^'"`;]*?from '([^']+)'/gms
const imports = sum(
  [...texts.values()].flatMap((text) => (text.match(importPattern) ?? []).map((one) => linesOf(one) + 1)),
)

// A workbook has no lines.
const tests = paths.filter((path) => path.startsWith('test/') && !path.endsWith('.xlsx'))
const pages = paths.filter((path) => path.endsWith('.md') && !path.startsWith('test/'))
const totals = {
  productLines: sum(byRoom.map(({ lines }) => lines)),
  productFiles: code.length,
  importPercent: Number(((100 * imports) / sum(byRoom.map(({ lines }) => lines))).toFixed(1)),
  testLines: sum(tests.map((path) => linesOf(textOf(path)))),
  words: sum(pages.map((path) => textOf(path).split(/\s+/).filter(Boolean).length)),
}

if (values.json) console.log(JSON.stringify({ totals, byRoom }))
else {
  for (const { room, lines, files } of byRoom)
    console.log(`${room.padEnd(22)}${String(lines).padStart(7)} lines${String(files).padStart(5)} files`)
  console.log(
    `product: ${totals.productLines} lines in ${totals.productFiles} files, ${totals.importPercent} % imports`,
  )
  console.log(`tests: ${totals.testLines} lines; pages: ${totals.words} words`)
}
