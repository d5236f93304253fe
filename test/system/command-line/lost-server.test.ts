import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isAlive } from '../../../core/state/process-identity.ts'
import { isOpen } from '../../../scripts/dev-server/readiness.ts'
import { findServer } from '../../../scripts/dev-server/server-record.ts'
import { asked, createWorld, local, startCommand, until, type World } from '../export/world.ts'
import { callCommand } from './call-command.ts'

const counts = { customers: 1, subscriptions: 0, plans: 3000, retentions: 0, orders: 0 }
const slowPlans = [{ kind: 'latency', ms: 200, on: 'GET /plans/' }] as const

async function serverOf(world: World) {
  await until(() => findServer(world.dataDir) !== undefined)
  return findServer(world.dataDir)!
}

const oneSentence = [
  expect.stringMatching(/^error: The Temporal dev server ended .*Its log: \S+temporal\.log$/),
]

describe('a command with --local', () => {
  test(
    'has a Temporal server that the Ctrl-C of its terminal does not reach, and leaves none behind when it is killed',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ counts, faults: [...slowPlans] })
      const command = startCommand(world, ['export', 'plans', '--local'], { env: local })
      await until(() => asked(world) > 5)
      const server = await serverOf(world)
      const [, fields] = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')
      const [_state, _parent, group] = fields!.split(' ')
      expect(group).toBe(String(server.pid))
      command.child.kill('SIGKILL')
      await until(() => !isAlive(server))
    },
  )

  test.each([
    ['as soon as its port is open', async (world: World) => isOpen((await serverOf(world)).address)],
    [
      'while the worker connects',
      // The worker takes the folder before it connects.
      (world: World) => existsSync(join(world.dataDir, 'worker.lock.json')),
    ],
    ['while the service is read', (world: World) => asked(world) > 5],
  ])(
    'ends with one sentence and within seconds if its Temporal server is killed %s',
    { tags: ['long'] },
    async (_, isDue) => {
      const world = await createWorld({ counts, faults: [...slowPlans] })
      const command = startCommand(world, ['export', 'plans', '--local', '--json'], { env: local })
      await until(() => isDue(world))
      const at = performance.now()
      process.kill((await serverOf(world)).pid, 'SIGKILL')
      const { code, stderr } = await command.ended
      expect(performance.now() - at).toBeLessThan(15_000)
      expect({ code, stderr }).toMatchObject({ code: 1 })
      expect(stderr.match(/^error: .*$/gm)).toEqual(oneSentence)
      expect(stderr).not.toMatch(/UNAVAILABLE|Error:/)
    },
  )
})

describe('up', () => {
  test(
    'refuses --local beside it, and ends with one sentence and exit code 1 when its server is killed',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ counts: { ...counts, plans: 5 } })
      const up = startCommand(world, ['up'], { env: local })
      await up.says('Other commands in this folder')
      const beside = await callCommand(world, ['export', 'plans', '--local'], { env: local })
      expect(beside).toMatchObject({ code: 2 })
      expect(beside.stderr).toMatch(
        /^error: Another command \(pid \d+\) runs the Temporal dev server of the data folder .*\. Commands without --local use/m,
      )
      const exported = await callCommand(world, ['export', 'plans', '--json'], { env: local })
      expect(exported, exported.stderr).toMatchObject({ code: 0 })
      process.kill((await serverOf(world)).pid, 'SIGKILL')
      const { code, stderr } = await up.ended
      expect({ code, stderr }).toMatchObject({ code: 1 })
      expect(stderr.match(/^error: .*$/gm)).toEqual(oneSentence)
    },
  )
})
