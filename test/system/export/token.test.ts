import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  asked,
  connectTemporal,
  createWorld,
  local,
  startCommand,
  startRun,
  startTestWorker,
  until,
} from './world.ts'
import { addonsCsv, putFile, quick, startImport, timesOf } from '../import/world.ts'

const slow = { counts: { customers: 4000 }, faults: [{ kind: 'latency', ms: 100 }] } as const
const input = { resources: ['customers' as const] }

describe('a token that expires while an export reads', () => {
  test(
    'ends the command within seconds, in one line; the same command is proven with a valid one',
    { tags: ['long'] },
    async () => {
      const world = await createWorld(slow)
      const words = ['export', 'customers', '--local', '--json']
      const first = startCommand(world, words, { env: local })
      await until(() => asked(world) > 22)
      world.sandbox.control.adjust({ tokens: ['next'] })
      const expiredAt = performance.now()
      const { code, stdout, stderr } = await first.ended
      expect(code).toBe(1)
      expect(performance.now() - expiredAt).toBeLessThan(15_000)
      const failures = stderr.split('\n').filter((line) => line.startsWith('error: '))
      expect(failures).toEqual([
        expect.stringMatching(/does not accept the token.*set a valid one.*Run the same export again/),
      ])
      expect(stderr).not.toMatch(/\n\s+at /)
      expect(JSON.parse(stdout)).toMatchObject({ error: { name: 'ExportFailed' } })
      expect(await readdir(join(world.dataDir, 'exports'))).toEqual(['reports'])

      // At most what was in flight got a 401; nothing was tried again.
      expect(asked(world)).toBeLessThan(40)
      world.sandbox.control.setFaults({ faults: [] })
      const second = startCommand(world, words, { env: { ...local, BILLING_TOKEN: 'next' } })
      const ended = await second.ended
      expect(ended.code).toBe(0)
      expect(JSON.parse(ended.stdout)).toMatchObject({ exports: [{ verdict: 'proven', records: 4000 }] })
    },
  )

  test('is not noticed where its file holds the next one by then', async () => {
    const world = await createWorld(slow)
    const file = join(world.dataDir, 'token')
    await writeFile(file, `${world.sandbox.token}\n`)
    await startTestWorker(world, { BILLING_TOKEN: '', BILLING_TOKEN_FILE: file })
    const run = await startRun({ client: await connectTemporal(), world, input })
    await until(() => asked(world) > 12)
    await writeFile(file, 'next\n')
    world.sandbox.control.adjust({ tokens: ['next'] })
    world.sandbox.control.setFaults({ faults: [] })
    expect(await run.result()).toMatchObject({
      verdict: 'proven',
      exports: [{ records: 4000 }],
    })
    const refused = world.sandbox.control.requests().filter(({ status }) => status === 401)
    expect(refused.length).toBeGreaterThan(0)
    // Each window in flight found out for itself, once.
    expect(refused.length).toBeLessThan(6)
  })
})

describe('a token that expires while an import sends', () => {
  test('is waited for; each row is sent once', { tags: ['long'] }, async () => {
    const world = await createWorld({ faults: [{ kind: 'latency', ms: 60 }] })
    const file = join(world.dataDir, 'token')
    await writeFile(file, world.sandbox.token, { mode: 0o600 })
    const worker = startCommand(world, ['worker'], { env: { BILLING_TOKEN: '', BILLING_TOKEN_FILE: file } })
    const client = await connectTemporal()
    const rows = await putFile(world, addonsCsv(60))
    const run = await startImport({
      client,
      world,
      input: { kind: 'addons', file: rows, canary: 0, ...quick },
    })
    const posts = () => world.sandbox.control.requests().filter(({ method }) => method === 'POST').length
    await until(() => posts() > 10)
    world.sandbox.control.adjust({ tokens: ['next'] })
    await worker.says('waiting for a new token')
    await writeFile(file, 'next')
    expect(await run.result()).toMatchObject({ verdict: 'proven', counts: { done: 60 } })
    expect(timesOf(world, 'addons', 60)).toEqual(Array.from({ length: 60 }, () => 1))
  })
})
