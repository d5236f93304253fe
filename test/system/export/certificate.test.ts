import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { listNames } from '../../../sandbox/options.ts'
import { connectTemporal, createWorld, folderOf, startRun, startTestWorker } from './world.ts'

const run = promisify(execFile)
const hasPython = await run('python3', ['--version']).then(
  () => true,
  () => false,
)
if (!hasPython) console.log('Without python3, nothing tests what scripts/check-certificate.py says.')

/** What the checker says of an export. */
async function judge(folder: string): Promise<string> {
  const { stdout } = await run('python3', ['scripts/check-certificate.py', folder]).catch(
    (error: { stdout: string }) => error,
  )
  return stdout
}

const sizeOf = async (folder: string, name: string) => (await stat(join(folder, name))).size

test.skipIf(!hasPython)(
  'the checker follows the exports of all lists that change while they are read in ranges',
  { tags: ['long'] },
  async () => {
    const perRequest = { inserts: 1, deletes: 1, updates: 2, restores: 1, lateCommits: 1 }
    const drift = Object.fromEntries(listNames.map((name) => [name, { perRequest }]))
    const world = await createWorld({ counts: { customers: 3_000, subscriptions: 1_300 }, drift })
    await startTestWorker(world, {}, { recordsPerRange: 600 })
    const client = await connectTemporal()
    const input = { resources: [...listNames], parallel: 3 }
    const report = await (await startRun({ client, world, input })).result()
    expect(report.verdict).toBe('proven')
    for (const name of listNames)
      expect(await judge(folderOf(report, name))).toMatch(/^ACCEPT \d+ records, complete through /)
    const folder = folderOf(report, 'customers')
    const share = (await sizeOf(folder, 'certificate.jsonl')) / (await sizeOf(folder, 'customers.csv'))
    expect(share).toBeLessThan(0.007)
  },
)
