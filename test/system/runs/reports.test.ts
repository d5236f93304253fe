import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { connectTemporal, createWorld, startTestWorker } from '../export/world.ts'
import { putFile, quick, retentionsCsv, startImport } from '../import/world.ts'

/** The visible text of a page, tag by tag. */
const words = (page: string) => page.replace(/<style>[^]*?<\/style>/, '').replaceAll(/\s*<[^>]*>\s*/g, '\n')

test(
  'every run of an import leaves a page that shows what its report holds',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({
      counts: { customers: 5, subscriptions: 0, plans: 0, retentions: 0 },
      faults: [
        { kind: 'latency', ms: 30 },
        { kind: 'refuse', answer: { number: ['No.'] }, on: 'POST /retentions/', to: 4 },
      ],
    })
    await startTestWorker(world)
    const client = await connectTemporal()
    const file = await putFile(world, retentionsCsv(60))
    const imported = await startImport({
      client,
      world,
      input: { kind: 'retentions', file, canary: 0, ...quick },
    })
    const result = await imported.result()
    expect(result.counts).toMatchObject({ done: 56, rejected: 4 })
    const importPage = await readFile(join(dirname(result.files.report ?? ''), 'report.html'), 'utf8')
    expect(words(importPage)).toMatch(/\ndone\n\s*56\n/)
    expect(words(importPage)).toMatch(/4 rejected: rows \d+, \d+, \d+, \d+\./)
    expect(importPage).toContain('aria-label="56 done, 4 rejected"')
    expect(words(importPage)).toContain('1,860.00')
    expect(importPage).not.toContain('Honorarios')

    // Row 2 is invalid: a page says by which rule, and does not repeat the cell.
    const invalid = await putFile(world, retentionsCsv(9).replace('2026-03-01', '2026-13-01'))
    for (const dryRun of [true, false]) {
      const input = {
        kind: 'retentions' as const,
        file: invalid,
        onInvalid: 'skip' as const,
        done: 'skip' as const,
        dryRun,
        ...quick,
      }
      const { files } = await (await startImport({ client, world, input })).result()
      const page = await readFile(join(dirname(files.report ?? ''), 'report.html'), 'utf8')
      expect(words(page)).toContain('date: is not a date that this field accepts')
      expect(page).not.toContain('2026-13-01')
    }
  },
)
