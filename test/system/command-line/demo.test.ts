import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { endProcess } from '../../../core/state/process-identity.ts'
import { findServer } from '../../../scripts/dev-server/server-record.ts'
import { hasPython } from '../export/python-checker.ts'
import { runProgram } from './run-program.ts'

interface Told {
  export: { exports: { resource: string; verdict: string }[] }
  import: {
    verdict: string
    counts: Record<string, number>
    outcomes: Record<string, number>
    files: { report: string }
  }
  recovery: { summary: string; outcomes: Record<string, number>; needsPerson: string[] }
}

async function startDemo() {
  const folder = await mkdtemp(join(tmpdir(), 'demo-'))
  const demos = join(folder, 'data', 'demo')
  /** The folder of this demo. */
  const dataDir = async () => join(demos, (await readdir(demos))[0] ?? '')
  onTestFinished(async () => {
    const server = findServer(await dataDir().catch(() => demos))
    if (server !== undefined) await endProcess({ identity: server, graceMs: 0 })
    await rm(folder, { recursive: true, force: true })
  })
  const env = { INIT_CWD: folder }
  return runProgram({ program: 'scripts/start.js', words: ['demo', '--json'], env })
}

/** The lines of a text, with figures and columns as wide as any. */
const masked = (text: string): string[] =>
  text
    .trim()
    .split('\n')
    .map((line) => line.replaceAll(/\d[\d,]*/g, 'N').replaceAll(/ +/g, ' '))

/** The lines of a block of a Markdown page that begins like this. */
function blockOf(page: string, begins: string): string[] {
  const block = page.split(/^```\w*$/m).find((one) => one.trim().startsWith(begins))
  if (block === undefined) throw new Error(`no block begins with ${begins}`)
  return masked(block)
}

test(
  'a demo that is interrupted begins nothing more, and shows no empty table if nothing was published',
  { tags: ['long'] },
  async () => {
    const { child, ended, says } = await startDemo()
    await says('1. An export')
    child.kill('SIGINT')
    const { code, stderr } = await ended
    // Where the machine is slow, some lists may have been published by then.
    expect(stderr).not.toMatch(/^list +verdict +records\n(?!\w)/m)
    expect(stderr).not.toContain('2. An import')
    expect(code).toBe(3)
  },
)

test(
  'the demo exports, imports and recovers while records move and connections break, and says where',
  { tags: ['long'] },
  async () => {
    const { code, stdout, stderr } = await (await startDemo()).ended
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    const told = JSON.parse(stdout) as Told
    expect(told.export.exports.map(({ resource, verdict }) => [resource, verdict])).toEqual([
      ['customers', 'proven'],
      ['subscriptions', 'proven'],
      ['plans', 'proven'],
      ['retentions', 'proven'],
    ])
    expect(told.import).toMatchObject({
      verdict: 'proven',
      counts: { done: 24, rejected: 3, unknown: 0, parked: 0 },
      // One of the two broken connections had done its work.
      outcomes: { created: 23, found: 1 },
    })
    // Only the cards that fail again and again are left.
    expect(told.recovery.outcomes).toMatchObject({ recovered: 57, attemptsUsedUp: 3 })
    expect(told.recovery.needsPerson).toEqual([expect.stringMatching(/^3 fell back after every resume/)])
    expect(stderr).toMatch(/The plain loop has lost [1-9]\d* customers without noticing, the export 0\./)
    expect(stderr).toContain('57 of the 60 are active, and 3 still need attention')
    expect(stderr).toContain('has 24 of the 24 valid rows exactly once, and 0 not once')
    expect(JSON.parse(await readFile(told.import.files.report, 'utf8'))).toMatchObject({ verdict: 'proven' })
    if (!hasPython) return
    const shown = blockOf(await readFile('README.md', 'utf8'), '1. An export')
    const said = masked(stderr)
    expect(said.slice(said.indexOf(shown[0] ?? '')).slice(0, shown.length), 'as README.md shows it').toEqual(
      shown,
    )
  },
)
