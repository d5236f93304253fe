import { expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { createWorld, until } from '../export/world.ts'
import { startSteps, workflowCode } from '../workflows/steps.ts'

test('check --replay says of each open run whether it can resume with the code that is installed', async () => {
  const world = await createWorld({ counts: { customers: 1 } })
  const { taskQueue } = world
  const check = async () => {
    const { code, stdout, stderr } = await callCommand(world, ['check', '--replay', '--json'])
    return { code, stderr, findings: (JSON.parse(stdout || '{}') as { findings?: object[] }).findings }
  }
  expect(await check()).toMatchObject({
    code: 0,
    findings: [{ status: 'ok', message: `No run is open on ${taskQueue}.` }],
  })

  const code = await workflowCode()
  // It is retried for some minutes: until then the run is open.
  const openExport = () => {
    throw new Error('not yet')
  }
  const start = async (name: string, of: Awaited<ReturnType<typeof startSteps>>) => {
    const run = await of.client.workflow.start('exportData', {
      workflowId: `${name}-${taskQueue}`,
      taskQueue,
      args: [],
    })
    await until(async () => (await run.describe()).historyLength > 4)
  }
  const today = await startSteps({ openExport }, { code, taskQueue })
  await start('today', today)
  expect(await check()).toMatchObject({ code: 0, findings: [{ status: 'ok' }] })
  await today.stop()

  // As a version whose first step has another name left it.
  const otherCode = code.replaceAll('openExport', 'beginExport')
  const other = await startSteps({ beginExport: openExport } as never, { code: otherCode, taskQueue })
  await start('other', other)
  await other.stop()
  const { code: exitCode, findings } = await check()
  expect(exitCode).toBe(1)
  expect(findings).toHaveLength(2)
  expect(findings).toContainEqual({
    check: 'replay',
    status: 'ok',
    message: `The run today-${taskQueue} can resume with this version.`,
  })
  expect(findings).toContainEqual({
    check: 'replay',
    status: 'wrong',
    message: expect.stringMatching(
      /^The run other-\S+ cannot resume with this version\. Let it end, or stop it, before you upgrade\. Its history departs from the code: Activity type of scheduled event 'beginExport' does not match activity type of activity command 'openExport'$/,
    ),
  })
})
