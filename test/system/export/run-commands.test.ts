import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { isAlive } from '../../../core/state/process-identity.ts'
import { findServer } from '../../../scripts/dev-server/server-record.ts'
import { asked, createWorld, local, startCommand, startTestWorker, until, type World } from './world.ts'

const slow = { counts: { customers: 4000 }, faults: [{ kind: 'latency', ms: 4000, from: 10 }] } as const

async function tell(world: World, ...words: string[]) {
  const { code, stdout, stderr } = await callCommand(world, [...words, '--json'])
  return { code, stderr, document: JSON.parse(stdout) as Record<string, unknown> }
}

async function detach(world: World): Promise<string> {
  const { code, document } = await tell(world, 'export', 'customers', '--detach')
  expect(code).toBe(0)
  return String(document['run'])
}

test('runs lists kind, verdict and what needs a person, and filters by them and by time', async () => {
  const world = await createWorld({ counts: { plans: 7 } })
  await startTestWorker(world)
  const { document: done } = await tell(world, 'export', 'plans')
  const { document: cut } = await tell(world, 'export', 'plans', 'customers', '--input', 'maxPages=1')
  const listed = async (...words: string[]) =>
    (await tell(world, 'run', 'list', ...words)).document as unknown as {
      runs: { run: string; kind: string; verdict: string; needsPerson: boolean }[]
    }
  const both = [String(done['run']), String(cut['run'])].toSorted()
  await until(async () => (await listed()).runs.every(({ verdict }) => verdict !== null))
  expect((await listed('--since', '1h')).runs.map(({ run }) => run).toSorted()).toEqual(both)
  expect((await listed('--since', '2100-01-01')).runs).toEqual([])
  expect((await listed('--verdict', 'proven')).runs).toMatchObject([{ run: done['run'], kind: 'export' }])
  expect((await listed('--needs-person')).runs.every(({ needsPerson }) => needsPerson)).toBe(true)
  const mistyped = await callCommand(world, ['run', 'list', '--verdict', 'provn'])
  expect(mistyped).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean proven?') })
  expect(await callCommand(world, ['run', 'list', '--since', '30'])).toMatchObject({ code: 2 })
})

describe('a run that was started and left', () => {
  test('is listed, told of, paused, unpaused and watched to its end, and its report stays', async () => {
    const world = await createWorld(slow)
    await startTestWorker(world)
    const run = await detach(world)
    await until(() => asked(world) > 8)
    const [paused, runs] = await Promise.all([
      tell(world, 'run', 'pause', run),
      tell(world, 'run', 'list', '--open'),
    ])
    expect(paused).toMatchObject({ code: 0, document: { run, signal: 'pause' } })
    expect(runs.document).toMatchObject({ runs: [{ run, status: 'running' }] })
    expect(await tell(world, 'run', 'show', run)).toMatchObject({
      code: 0,
      document: { run, status: 'running', phase: 'paused', resources: [{ resource: 'customers' }] },
    })
    expect((await callCommand(world, ['run', 'show', run])).stdout).toMatch(`${run} is paused\n`)
    expect(await tell(world, 'run', 'limits', run, '--rate', '2', '--why', 'slow')).toMatchObject({
      code: 2,
      document: { error: { message: expect.stringContaining('takes no approval and no limits') } },
    })
    expect(await tell(world, 'run', 'report', run)).toMatchObject({
      code: 2,
      document: { error: { message: expect.stringContaining(run) } },
    })
    expect(await tell(world, 'run', 'unpause', run)).toMatchObject({ code: 0 })
    world.sandbox.control.setFaults({ faults: [] })
    const watched = await tell(world, 'run', 'watch', run)
    expect(watched).toMatchObject({ code: 0, document: { run, exports: [{ verdict: 'proven' }] } })
    const [report, status, again] = await Promise.all([
      tell(world, 'run', 'report', run),
      tell(world, 'run', 'show', run),
      tell(world, 'run', 'stop', run),
    ])
    expect(report).toEqual({ ...watched, stderr: '' })
    expect(status.document).toMatchObject({
      status: 'completed',
      phase: 'ended',
      summary: expect.any(String),
    })
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no active run') })
  })

  test(
    'ends with its report when it is stopped, exit 3; who only watches does not stop it',
    { tags: ['long'] },
    async () => {
      const world = await createWorld(slow)
      await startTestWorker(world)
      const run = await detach(world)
      await until(() => asked(world) > 8)
      const [watching, looking] = [
        startCommand(world, ['run', 'watch', run]),
        startCommand(world, ['run', 'watch', run]),
      ]
      await Promise.all([watching.says('customers: '), looking.says('customers: ')])
      looking.child.kill('SIGINT')
      expect(await looking.ended).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`${run} continues`),
      })
      expect(watching.child.exitCode).toBeNull()
      expect(await callCommand(world, ['run', 'stop', run])).toMatchObject({
        code: 0,
        stdout: `${run} stops cleanly: it begins nothing more, ends what is in progress, and writes its report. Nothing is lost.\n`,
      })
      expect(await watching.ended).toMatchObject({ code: 3, stdout: expect.stringContaining('stopped') })
      expect(await tell(world, 'run', 'report', run)).toMatchObject({
        code: 3,
        document: { exports: [{ resource: 'customers', verdict: 'stopped' }] },
      })
    },
  )

  test('is reported if no worker answers', { tags: ['long'] }, async () => {
    const world = await createWorld(slow)
    const worker = await startTestWorker(world)
    const run = await detach(world)
    await until(() => asked(world) > 8)
    await worker.stop()
    const { code, document, stderr } = await tell(world, 'run', 'show', run)
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'Waiting for the worker ...\n' })
    expect(document).toMatchObject({
      status: 'running',
      message: expect.stringContaining(`No worker on the task queue ${world.taskQueue} answers`),
    })
    expect(await tell(world, 'run', 'stop', run)).toMatchObject({ code: 0 })
  })
})

describe('Ctrl-C', () => {
  test('once ends the run cleanly, with its report, exit 3', { tags: ['long'] }, async () => {
    const world = await createWorld(slow)
    const { child, ended } = startCommand(world, ['export', 'customers', '--local', '--json'], { env: local })
    await until(() => asked(world) > 12)
    child.kill('SIGINT')
    const { code, stdout, stderr } = await ended
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toMatchObject({ exports: [{ resource: 'customers', verdict: 'stopped' }] })
    expect(stderr).toContain('Stopping: nothing more is read or published.')
  })

  test('twice lets go of the run, and says how to follow it', { tags: ['long'] }, async () => {
    const world = await createWorld(slow)
    const worker = await startTestWorker(world)
    const command = startCommand(world, ['export', 'customers'])
    await until(() => asked(world) > 8)
    // Without a worker it can not end.
    await worker.stop()
    await interruptTwice(command)
    const { code, stderr } = await command.ended
    expect(code).toBe(1)
    expect(stderr).toContain('continues. Follow it with: npx connector run watch export-customers-')
  })

  test(
    'twice ends everything with --local, and the same command resumes the run',
    { tags: ['long'] },
    async () => {
      const world = await createWorld(slow)
      const words = ['export', 'customers', '--local', '--json']
      const command = startCommand(world, words, { env: local })
      await command.says('Run export-')
      await until(() => asked(world) > 8)
      const server = findServer(world.dataDir)!
      // A frozen server passes nothing on: neither can the run end. On a busy machine, a thread may run on for a moment.
      process.kill(server.pid, 'SIGSTOP')
      await until(() => stateOfThreads(server.pid).every((state) => state === 'T'))
      await interruptTwice(command)
      const { code, stderr } = await command.ended
      expect(code).toBe(1)
      expect(stderr).toContain('waits. Run the same command again to resume it.')
      expect(isAlive(server)).toBe(false)
      world.sandbox.control.setFaults({ faults: [] })
      const again = await startCommand(world, words, { env: local }).ended
      expect(again.stderr).toContain('Resumes the unfinished run')
      expect(again.code).toBe(0)
    },
  )
})

function stateOfThreads(pid: number): (string | undefined)[] {
  const tasks = `/proc/${pid}/task`
  return readdirSync(tasks).map(
    (task) => /\) (\w) /.exec(readFileSync(join(tasks, task, 'stat'), 'utf8'))?.[1],
  )
}

async function interruptTwice({ child, says }: ReturnType<typeof startCommand>): Promise<void> {
  child.kill('SIGINT')
  await says('Stopping')
  // Within 300 ms it would be the same keystroke.
  await sleep(400)
  child.kill('SIGINT')
}

test('a folder on the command line is the caller’s own', async () => {
  const world = await createWorld({ counts: { plans: 7 } })
  const elsewhere = join(world.dataDir, '..', `${world.workspace}-elsewhere`)
  await mkdir(elsewhere)
  await startTestWorker(world, { CONNECTOR_OUT_DIRS: elsewhere })
  const env = { INIT_CWD: elsewhere }
  const { code } = await callCommand(world, ['export', 'plans', '--input', 'out=mine'], { env })
  expect(code).toBe(0)
  expect(await readdir(join(elsewhere, 'mine'))).toEqual(['plans'])
})
