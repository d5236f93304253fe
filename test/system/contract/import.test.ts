import { expect } from 'vitest'
import { createWorld } from '../export/world.ts'
import { once, posts, putFile, retentionsCsv, startImport, timesOf } from '../import/world.ts'
import { describeJob, slowFrom } from './job.ts'

const rows = 150
const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 20, orders: 0 }

describeJob('an import', {
  workflow: 'importFile',
  stopped: { verdict: 'unproven', ended: { how: 'stopped' }, counts: { unknown: 0 } },
  buttons: ['approve', 'pause', 'resolve', 'setLimits', 'stop', 'unpause'],
  async open() {
    const world = await createWorld({ counts, faults: [slowFrom('POST /retentions/')] })
    const file = await putFile(world, retentionsCsv(rows))
    const quick = { verifyAfter: 0.3, maxFailureShare: 1, canary: 0, breakerWaits: [2, 2, 2] }
    const input = { kind: 'retentions', file, ...quick } as const
    return {
      world,
      input,
      // The same id is the same run: another one is refused, because these rows are in the ledger.
      start: (client, before) =>
        startImport({ client, world, input, ...(before && { name: before.workflowId }) }),
      work: () => posts(world),
      expectDone(result) {
        expect(result).toMatchObject({ verdict: 'proven', counts: { done: rows } })
        expect(timesOf(world, 'retentions', rows)).toEqual(once(rows))
      },
    }
  },
})
