import { Worker, type ReplayHistoriesIterable } from '@temporalio/worker'
import { toDataConverter } from './codec/data-converter.ts'
import type { PayloadKey } from './codec/payload-key.ts'
import { createLogger } from './telemetry/log.ts'
import { installRuntime } from './telemetry/runtime.ts'
import { loadWorkflowBundle } from './workflow-bundle.ts'

/** Replays histories against this version's workflow code. Each error says where a history diverges. */
export async function* replayHistories(options: {
  runs: ReplayHistoriesIterable
  payloadKeys: readonly PayloadKey[]
}): AsyncGenerator<{ workflowId: string; error?: Error | undefined }> {
  const { runs, payloadKeys } = options
  // Results include each failure; the SDK would log it again.
  await installRuntime({
    logger: createLogger({ level: 'error', format: 'text', write: () => {} }),
    level: 'error',
    metrics: false,
  })
  const results = Worker.runReplayHistories(
    {
      workflowBundle: await loadWorkflowBundle({ encodesFailures: payloadKeys.length > 0 }),
      dataConverter: toDataConverter(payloadKeys),
    },
    runs,
  )
  for await (const { workflowId, error } of results) yield { workflowId, error }
}
