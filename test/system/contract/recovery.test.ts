import { expect } from 'vitest'
import { createWorld } from '../export/world.ts'
import {
  breakSome,
  idsOf,
  quick,
  resume,
  resumesAsked,
  resumesDone,
  startRecovery,
  stateOf,
  well,
} from '../recovery/world.ts'
import { describeJob, slowFrom } from './job.ts'

const counts = { ...well.counts, subscriptions: 100 }

describeJob('a recovery', {
  workflow: 'recoverSubscriptions',
  env: { BILLING_SETTLE_SECONDS: '0.3' },
  stopped: { verdict: 'unproven', ended: { how: 'stopped' }, counts: { unknown: 0 } },
  buttons: ['approve', 'pause', 'resolve', 'setLimits', 'stop', 'unpause'],
  async open() {
    const world = await createWorld({ ...well, counts, faults: [slowFrom(resume)] })
    const ids = breakSome(world, { ids: idsOf(world).slice(0, 80), reason: 'gateway_issue' })
    const input = { ...quick, canary: 0 }
    return {
      world,
      input,
      start: (client) => startRecovery({ client, world, input }),
      work: () => resumesAsked(world).length,
      expectDone(result) {
        expect(result).toMatchObject({ verdict: 'proven' })
        expect(ids.filter((id) => stateOf(world, id).status !== 'active')).toEqual([])
        expect(resumesDone(world).toSorted()).toEqual(ids.toSorted())
      },
    }
  },
})
