import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { asked, connectTemporal, createWorld, startRun, startTestWorker, until } from './world.ts'

test.each([
  ['another workspace', { BILLING_WORKSPACE: 'acc_other' }, 'acc_other'],
  ['the other mode', { BILLING_TEST_MODE: 'true' }, 'live mode, not test'],
  ['another data folder', {}, 'the state store'],
])(
  'a run that another worker takes up, of %s, ends with a sentence and asks nothing',
  async (_, env, says) => {
    const world = await createWorld({ counts: { customers: 4000 }, faults: [{ kind: 'latency', ms: 100 }] })
    const right = await startTestWorker(world)
    const input = { resources: ['customers' as const] }
    const run = await startRun({ client: await connectTemporal(), world, input })
    await until(() => asked(world) > 8)
    await right.stop()
    // Answered after what the stopped worker had written to its connections was received.
    await fetch(world.sandbox.url)
    const before = asked(world)
    const other = await mkdtemp(join(tmpdir(), 'other-'))
    onTestFinished(() => rm(other, { recursive: true, force: true }))
    const folder = says === 'the state store' ? { CONNECTOR_DATA_DIR: other } : {}
    await startTestWorker(world, { ...env, ...folder }, { taskQueue: world.taskQueue })
    await expect(run.result()).rejects.toMatchObject({
      cause: {
        type: 'WrongWorker',
        message: expect.stringMatching(/^This run was started for .*start a new run\.$/),
      },
    })
    await expect(run.result()).rejects.toMatchObject({ cause: { message: expect.stringContaining(says) } })
    expect(asked(world)).toBe(before)
    expect(await readdir(other)).not.toContain('exports')
  },
)
