// Checks and stages a file in a process of its own, whose memory is bounded by its caller.
import { checkFile } from '../../../../core/imports/check.ts'
import { stageFile } from '../../../../core/imports/staging/stage.ts'

const [, , path = ''] = process.argv
const file = { kind: 'retentions', path, mapping: { locale: 'es-CL' } } as const
const started = process.cpuUsage()
const check = await checkFile(file)
let staged = 0
for await (const _change of stageFile({ ...file, check, onInvalid: 'stop' })) staged += 1
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
