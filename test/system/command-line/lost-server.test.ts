import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isAlive } from '../../../core/state/process-identity.ts'
import { isOpen } from '../../../scripts/dev-server/readiness.ts'
import { asked, createWorld, local, startCommand, until, type World } from '../export/world.ts'
import { addonsCsv, once, timesOf } from '../import/world.ts'
import { breakableBinary, recordOf, serverOf } from './local-server.ts'

const counts = { customers: 1, subscriptions: 0, plans: 3000, retentions: 0, orders: 0 }
const slowPlans = [{ kind: 'latency', ms: 200, on: 'GET /plans/' }] as const

describe('a command with --local whose Temporal server is killed', () => {
  test('starts it again on the same port, and the run resumes by itself', { tags: ['long'] }, async () => {
    const world = await createWorld({
      counts,
      faults: [{ kind: 'latency', ms: 150, on: 'POST /addons/' }],
    })
    const file = join(world.dataDir, 'addons.csv')
    await writeFile(file, addonsCsv(80))
    const words = ['import', 'addons', file, '--local', '--yes', '--json']
    const importing = startCommand(world, words, { env: { ...local, BILLING_SETTLE_SECONDS: '0.5' } })
    const posts = () => world.sandbox.control.requests().filter(({ method }) => method === 'POST').length
    await until(() => posts() > 10)
    const before = await serverOf(world)
    process.kill(before.pid, 'SIGKILL')
    const { code, stdout, stderr } = await importing.ended
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'proven', counts: { done: 80 } })
    expect(timesOf(world, 'addons', 80)).toEqual(once(80))
    expect(stderr).not.toMatch(/UNAVAILABLE|^error/m)
  })

  test(
    'says so in one sentence and ends within seconds when it cannot start it again',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ counts, faults: [...slowPlans] })
      const { env, breakIt } = await breakableBinary(world)
      const command = startCommand(world, ['export', 'plans', '--local'], { env })
      await until(() => asked(world) > 5)
      await breakIt()
      const at = performance.now()
      process.kill((await serverOf(world)).pid, 'SIGKILL')
      const { code, stderr } = await command.ended
      expect(performance.now() - at).toBeLessThan(10_000)
      expect(code).toBe(1)
      expect(stderr.match(/^error: .*$/gm)).toEqual([
        expect.stringMatching(/^error: The Temporal dev server did not start: .*Its log: \S+temporal\.log$/),
      ])
    },
  )

  test('takes it with it when it is killed itself', { tags: ['long'] }, async () => {
    const world = await createWorld({ counts, faults: [...slowPlans] })
    const command = startCommand(world, ['export', 'plans', '--local'], { env: local })
    await until(() => asked(world) > 5)
    const server = await serverOf(world)
    command.child.kill('SIGKILL')
    await until(() => !isAlive(server))
  })
})

describe('up', () => {
  test(
    'starts a killed server again where other commands find it, and says so when it cannot',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ counts: { ...counts, plans: 5 } })
      const { env, breakIt } = await breakableBinary(world)
      const up = startCommand(world, ['up'], { env })
      await up.says('Other commands in this folder')
      const before = await serverOf(world)
      process.kill(before.pid, 'SIGKILL')
      await until(() => recordOf(world)?.pid !== before.pid)
      expect((await serverOf(world)).address).toBe(before.address)
      const exported = await startCommand(world, ['export', 'plans', '--json'], { env }).ended
      expect(exported, exported.stderr).toMatchObject({ code: 0 })
      await breakIt()
      const at = performance.now()
      process.kill((await serverOf(world)).pid, 'SIGKILL')
      const { code, stderr } = await up.ended
      expect(code).toBe(1)
      expect(stderr.match(/^error: .*$/gm)).toEqual([
        expect.stringContaining('The Temporal dev server did not start'),
      ])
      expect(performance.now() - at).toBeLessThan(15_000)
    },
  )
})

test.each([
  ['as soon as its port is open', async (world: World) => isOpen((await serverOf(world)).address)],
  [
    'while the worker connects',
    // The worker takes the folder before it connects.
    (world: World) => existsSync(join(world.dataDir, 'worker.lock.json')),
  ],
])(
  'a command with --local whose Temporal server is killed %s resumes or ends with one sentence, and never hangs',
  { tags: ['long'] },
  async (_, isDue) => {
    const world = await createWorld({ counts: { plans: 5 } })
    const command = startCommand(world, ['export', 'plans', '--local', '--json'], { env: local })
    await until(() => isDue(world))
    const at = performance.now()
    process.kill((await serverOf(world)).pid, 'SIGKILL')
    const { code, stdout, stderr } = await command.ended
    expect(performance.now() - at).toBeLessThan(40_000)
    if (code === 0) expect(JSON.parse(stdout)).toMatchObject({ exports: [{ verdict: 'proven', records: 5 }] })
    else {
      expect({ code, stderr }).toMatchObject({ code: 1 })
      expect(stderr.match(/^error: .*$/gm)).toEqual([
        expect.stringMatching(/^error: The Temporal dev server .*Its log: \S+temporal\.log$/),
      ])
    }
    expect(stderr).not.toMatch(/UNAVAILABLE|Error:/)
  },
)
