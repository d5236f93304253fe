import { expect, test } from 'vitest'
import { showTestMode } from '../../../core/changes/send/probe-mode.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import { clientOf, startSandbox } from './engine.ts'

async function probe(options: SandboxOptions) {
  const sandbox = await startSandbox(options)
  await showTestMode({ billing: clientOf(sandbox, { testMode: true }) })
}

const none = { customers: 0, subscriptions: 0, retentions: 0 }

test('a record of test data shows that the header is honoured, in whichever list it lies', async () => {
  await probe({ testCounts: { ...none, customers: 1 } })
  await probe({ testCounts: { ...none, retentions: 1 } })
})

test('live data, or none, shows nothing: then nothing may be written', async () => {
  await expect(probe({ counts: { customers: 3 }, honoursTestMode: false })).rejects.toThrow('live customers')
  await expect(probe({ testCounts: none })).rejects.toMatchObject({ name: 'ModeNotShownError' })
})
