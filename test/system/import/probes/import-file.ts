// Checks and stages a file in a process of its own, whose memory is bounded by its caller.
import { dirname } from 'node:path'
import { checkFile } from '../../../../core/imports/check.ts'
import { createChangesFile } from '../../../../core/changes/staged-changes.ts'

const [, , path = ''] = process.argv
const file = { kind: 'retentions', path, mapping: { locale: 'es-CL' } } as const
const of = { run: 'run', workspace: 'w', mode: 'live', kind: 'create-retention' } as const
const started = process.cpuUsage()
await using changes = await createChangesFile(dirname(path), of)
const check = await checkFile({ ...file, changes })
let staged = 0
for await (const batch of changes.batches()) staged += batch.length
const { user, system } = process.cpuUsage(started)
console.log(
  JSON.stringify({
    rows: check.totals.rows,
    total: check.totals.sums['total'],
    staged,
    cpuSeconds: (user + system) / 1e6,
    peakMegabytes: process.resourceUsage().maxRSS / 1_000,
  }),
)
