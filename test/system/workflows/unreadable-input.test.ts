import { Client, Connection } from '@temporalio/client'
import type { PayloadConverter } from '@temporalio/common'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { openTestWorker, openWorld, type World } from '../export/world.ts'

let world: World
let close: () => Promise<void>

beforeAll(async () => {
  world = await openWorld({ counts: { customers: 1, plans: 3 } })
  const worker = await openTestWorker(world)
  close = async () => {
    await worker.stop()
    await world.close()
  }
})
afterAll(() => close())

const bytes = (text: string) => new TextEncoder().encode(text)
const broken = { metadata: { encoding: bytes('json/plain') }, data: bytes('{"resources": ["plans"') }
const protobuf = {
  metadata: { encoding: bytes('json/protobuf'), messageType: bytes('a.B') },
  data: bytes('{}'),
}

test.each(['exportData', 'publishRun', 'importFile', 'fetchDocuments', 'watchSchedules'])(
  'an input that is not JSON ends a run of %s at once with a sentence',
  async (workflow) => {
    const connection = await Connection.connect({ address: inject('temporalAddress') })
    try {
      for (const [at, payload] of [broken, protobuf].entries()) {
        // As the Temporal UI sends what somebody typed under another encoding.
        const client = new Client({ connection })
        const raw: PayloadConverter = {
          toPayload: () => payload,
          fromPayload: () => undefined as never,
        }
        Object.assign(client.workflow.options.loadedDataConverter, { payloadConverter: raw })
        const run = await client.workflow.start(workflow, {
          workflowId: `unreadable-${world.workspace}-${workflow}-${at}`,
          taskQueue: world.taskQueue,
          args: ['anything'],
        })
        const { message } = await run.result().then(
          () => new Error('it did not fail'),
          (error: Error) => error.cause as Error,
        )
        expect(message).toBe(
          "The input can't be read as JSON: give one JSON object, with the encoding json/plain.",
        )
        expect((await run.fetchHistory()).events?.length).toBeLessThan(6)
      }
    } finally {
      await connection.close()
    }
  },
)
