import type { Payload, PayloadCodec } from '@temporalio/common'
import { expect, test } from 'vitest'
import { until } from '../export/world.ts'
import { closedExport, exportPlan, readSteps, startSteps, workflowTaskTimeout } from './steps.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

test.each(['openExport', 'finishRead'] as const)(
  'a result of %s that cannot be read fails the task and not the run, which ends once it can be read',
  { tags: ['long'] },
  async (step) => {
    const broken = { metadata: { encoding: bytes('json/unknown') }, data: bytes('{}') }
    let isBroken = true
    const mark = `result of ${step}`
    const codec: PayloadCodec = {
      encode: async (payloads) => payloads,
      decode: async (payloads) =>
        payloads.map((payload: Payload) =>
          isBroken && Buffer.from(payload.data ?? []).includes(mark) ? broken : payload,
        ),
    }
    const { client, taskQueue } = await startSteps(
      {
        openExport: () => ({ plan: exportPlan({ mark: step === 'openExport' ? mark : '' }) }),
        ...readSteps,
        finishRead: () => ({ records: 1, requests: 1, ended: { verdict: 'proven', checkpoint: mark } }),
        publishExport: () => ({ destination: 'csv', verdict: 'proven', reasons: [], warnings: [] }),
        closeExport: () => closedExport(),
      },
      { dataConverter: { payloadCodecs: [codec] } },
    )
    const options = { workflowId: taskQueue, taskQueue, args: [], workflowTaskTimeout } as const
    const run = await client.workflow.start('exportData', options)
    const failures = async () => {
      const { events } = await run.fetchHistory()
      return (events ?? []).flatMap(
        (event) => event.workflowTaskFailedEventAttributes?.failure?.message ?? [],
      )
    }
    await until(async () => (await failures()).length > 0)
    expect((await failures())[0]).toBe(`The result of the step ${step} cannot be read as JSON.`)
    expect((await run.describe()).status.name).toBe('RUNNING')
    isBroken = false
    expect(await run.result()).toMatchObject({ verdict: 'proven' })
  },
)
