import { heartbeat } from '@temporalio/activity'
import { expect, test } from 'vitest'
import type { SendInput } from '../../../core/changes/send/step.ts'
import { gate, importPlan, closedRun, sendStep, staged, startSteps } from './steps.ts'

test(
  'the claims that a worker reported before it froze are kept when the run is paused in the meantime, and told to its end',
  { tags: ['long'] },
  async () => {
    const frozen = gate()
    const thawed = gate()
    const claims: number[] = []
    const { client, taskQueue } = await startSteps({
      openRun: () => importPlan,
      stageRun: () => staged,
      sendRun: async (input: SendInput) => {
        claims.push(input.claims)
        if (claims.length > 1) return sendStep({ claims: input.claims })
        heartbeat({ claims: 7 })
        frozen.open()
        // It neither hears of the pause nor reports again: Temporal times it out.
        await thawed.promise
        throw new Error('too late')
      },
      closeRun: (input: { claims: number }) => {
        claims.push(input.claims)
        return closedRun()
      },
    })
    const workflowId = `heartbeat-details-${process.pid}`
    const run = await client.workflow.start('importFile', { workflowId, taskQueue })
    await frozen.promise
    await run.signal('pause')
    await run.signal('unpause')
    await run.result()
    thawed.open()
    expect(claims).toEqual([0, 7, 7])
  },
)
