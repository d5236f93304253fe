import { expect } from 'vitest'
import { asked, createWorld } from '../export/world.ts'
import { idsOf, startFetch } from '../fetch/world.ts'
import { describeJob, slowFrom } from './job.ts'

const records = 120

describeJob('a fetch of documents', {
  workflow: 'fetchDocuments',
  stopped: { verdict: 'stopped' },
  buttons: ['pause', 'stop', 'unpause'],
  async open() {
    const world = await createWorld({ counts: { customers: 1, creditnotes: records }, faults: [slowFrom()] })
    const ids = idsOf(world, 'creditnotes')
    const input = { documents: 'creditnotes', ids } as const
    return {
      world,
      input,
      start: (client) => startFetch({ client, world, input }),
      work: () => asked(world),
      expectDone: (report) => expect(report).toMatchObject({ verdict: 'proven', exports: [{ records }] }),
    }
  },
})
