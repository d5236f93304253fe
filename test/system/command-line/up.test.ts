import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { freePorts } from '../../../scripts/dev-server/free-ports.ts'
import { findServer } from '../../../scripts/dev-server/server-record.ts'
import { connectTemporal, createWorld, local, startCommand } from '../export/world.ts'

test(
  'up keeps runs for 30 days, serves the UI at the port that was asked for, links to the start form of a recovery, and refuses a port that is taken',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { plans: 5 } })
    const [port = 0] = await freePorts(1)
    const up = startCommand(world, ['up', '--ui-port', String(port)], { env: local })
    await up.says('Other commands in this folder')
    expect(up.texts.stderr).toContain(`Temporal UI: http://127.0.0.1:${port}`)
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

    const other = createServer()
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve))
    onTestFinished(() => void other.close())
    const refused = await startCommand(world, ['up', '--ui-port', String(port)], { env: local }).ended
    expect(refused).toMatchObject({ code: 2 })
    expect(refused.stderr).toContain(`Another program uses the port ${port}. Choose another --ui-port.`)
  },
)
