import { expect } from 'vitest'
import { asked, createWorld, startRun } from '../export/world.ts'
import { describeJob, slowFrom } from './job.ts'

const records = 4_000

describeJob('an export', {
  workflow: 'exportData',
  stopped: {
    verdict: 'stopped',
    exports: [{ resource: 'customers', destination: null, verdict: 'stopped' }],
  },
  buttons: ['pause', 'stop', 'unpause'],
  async open() {
    const world = await createWorld({ counts: { customers: records }, faults: [slowFrom()] })
    const input = { resources: ['customers' as const] }
    return {
      world,
      input,
      start: (client) => startRun({ client, world, input }),
      work: () => asked(world),
      expectDone: (report) => expect(report).toMatchObject({ verdict: 'proven', exports: [{ records }] }),
    }
  },
})
