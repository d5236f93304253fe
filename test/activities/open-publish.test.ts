import { expect, test } from 'vitest'
import type { ActivityDeps } from '../../activities/deps.ts'
import { createOpenPublish } from '../../activities/export/open.ts'
import type { StepContext } from '../../activities/step.ts'
import { savePlan } from '../../core/exports/plan.ts'
import { newMachine } from '../core/exports/machine.ts'
import { createPlan } from '../system/export/plan.ts'

test('to publish again refuses a field that no destination heeds, and not those that the export was given', async () => {
  const machine = await newMachine()
  const plan = createPlan({ to: ['postgres'], schema: 'mine' })
  await savePlan({ ...machine, plan })
  const destinations = new Map([['csv', {}]])
  const deps = { ...machine, outDirs: [], identity: plan.identity, destinations } as unknown as ActivityDeps
  const open = (more: object) =>
    createOpenPublish(deps)({} as StepContext, { run: plan.run, to: ['csv'], ...more })
  await expect(open({ maxDeletes: 'all' })).rejects.toThrow(
    'maxDeletes: has no effect on csv. Leave it out, or publish to duckdb or postgres.',
  )
  await expect(open({})).rejects.toThrow('did not finish reading any resource')
})
