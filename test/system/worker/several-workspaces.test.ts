import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runProgram } from '../command-line/run-program.ts'
import { asked, connectTemporal, createWorld, startRun, workerListens, type World } from '../export/world.ts'

const counts = { customers: 250, subscriptions: 0, plans: 1, retentions: 0 }

async function writeEnv(world: World, more: Record<string, string> = {}): Promise<string> {
  const file = join(world.dataDir, `${world.workspace}.env`)
  const lines = Object.entries({ ...world.env, ...more }).map(([name, value]) => `${name}=${value}`)
  await writeFile(file, lines.join('\n'), { mode: 0o600 })
  return file
}

test(
  'one process serves several workspaces, each with its own service, folder and token',
  { tags: ['long'] },
  async () => {
    const worlds = [await createWorld({ counts, token: 'one' }), await createWorld({ counts, token: 'two' })]
    const files = await Promise.all(worlds.map((world) => writeEnv(world)))
    const [first = '', second = ''] = files
    const wrong = await writeEnv(await createWorld({ counts }), { BILLING_TOKEN: '' })
    const worker = runProgram({
      program: 'scripts/start.js',
      words: ['worker', first, wrong, second, join(second, '..', 'absent.env'), first],
    })
    await Promise.all(worlds.map(workerListens))
    const client = await connectTemporal()
    for (const world of worlds) {
      const before = worlds.map(asked)
      const run = await startRun({ client, world, input: { resources: ['customers'] } })
      expect(await run.result()).toMatchObject({
        verdict: 'proven',
        exports: [{ records: 250 }],
      })
      // Only this workspace's service was asked.
      expect(worlds.map((one, at) => asked(one) > (before[at] ?? 0))).toEqual(
        worlds.map((one) => one === world),
      )
    }

    // A refused token holds up the run of its own workspace alone, until its file has another one.
    worlds[0]!.sandbox.control.adjust({ tokens: ['another'] })
    const [refused, fine] = await Promise.all(
      worlds.map((world) => startRun({ client, world, input: { resources: ['plans'] } })),
    )
    expect(await fine?.result()).toMatchObject({ verdict: 'proven' })
    await writeEnv(worlds[0]!, { BILLING_TOKEN: 'another' })
    expect(await refused?.result()).toMatchObject({ verdict: 'proven' })

    worker.child.kill('SIGTERM')
    const { code, stderr } = await worker.ended
    const lines = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { message: string; file?: string; error?: string })
    const errors = lines.filter(({ message }) => message === 'this workspace has no worker')
    expect(errors).toEqual([
      expect.objectContaining({ file: wrong, error: expect.stringContaining('BILLING_TOKEN is not set') }),
      expect.objectContaining({ file: expect.stringContaining('absent.env') }),
      expect.objectContaining({ error: expect.stringMatching(/^.* has the same BILLING_WORKSPACE as /) }),
    ])
    // Something was wrong, although the others worked to the end.
    expect(code).toBe(1)
  },
)

test('a process without one workspace that works ends and says so', { tags: ['long'] }, async () => {
  const wrong = await writeEnv(await createWorld({ counts }), { BILLING_TOKEN: '' })
  const { code, stderr } = await runProgram({ program: 'scripts/start.js', words: ['worker', wrong] }).ended
  expect(code).toBe(2)
  expect(stderr).toContain('BILLING_TOKEN is not set')
  expect(stderr).toContain('error: No workspace has a worker: the lines above say why, file by file.')
})
