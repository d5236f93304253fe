import { expect, test } from 'vitest'
import { findServer } from '../../../scripts/dev-server/server-record.ts'
import { connectTemporal, createWorld, local, startCommand } from '../export/world.ts'

test(
  'up keeps runs for 30 days, serves the UI, and links to the start form of a recovery',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { plans: 5 } })
    const up = startCommand(world, ['up'], { env: local })
    await up.says('Other commands in this folder')
    const [link = ''] = /http:\S+start-workflow\S+/.exec(up.texts.stderr) ?? []
    expect(Object.fromEntries(new URL(link).searchParams)).toEqual({
      workflowId: 'recover-today',
      taskQueue: world.taskQueue,
      workflowType: 'recoverSubscriptions',
    })
    expect((await fetch(new URL(link).origin)).ok).toBe(true)
    const { address = '' } = findServer(world.dataDir) ?? {}
    const { connection } = await connectTemporal({ address })
    const kept = await connection.workflowService.describeNamespace({ namespace: 'default' })
    expect(Number(kept.config?.workflowExecutionRetentionTtl?.seconds)).toBe(30 * 86_400)
    up.child.kill('SIGINT')
    expect((await up.ended).code).toBe(0)
  },
)

test('up refuses to start a server that no command would find', async () => {
  const world = await createWorld({ counts: { plans: 5 } })
  const { code, stderr } = await startCommand(world, ['up']).ended
  expect(code).toBe(2)
  expect(stderr).toBe(
    'error: The settings name a Temporal server (TEMPORAL_ADDRESS or TEMPORAL_PROFILE): commands would look there, not at the one that up starts. Start `npx connector worker` beside that server, or remove the setting.\n',
  )
})
