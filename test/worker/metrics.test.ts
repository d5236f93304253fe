import { DefaultLogger } from '@temporalio/worker'
import { expect, test } from 'vitest'
import { createTelemetry } from '../../worker/telemetry/metrics.ts'

test('a scrape tells of the workers that are seen at that moment, not at the scrape before', async () => {
  let workers = [{ worker: '1@a', folder: 'data', ms: 2_000 }]
  const telemetry = createTelemetry({
    ofProcess: true,
    logger: new DefaultLogger('ERROR'),
    info: {},
    countChanges: async () => [],
    findWorkers: async () => workers,
    freeBytes: async () => 1,
    proven: [],
  })
  expect(await telemetry.text()).toContain('connector_worker_seen_seconds{worker="1@a"} 2\n')
  workers = []
  expect(await telemetry.text()).not.toContain('1@a')
})
