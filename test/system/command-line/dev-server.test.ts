import { Client, Connection } from '@temporalio/client'
import { defineSearchAttributeKey } from '@temporalio/common'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs, {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { freePorts } from '../../../scripts/dev-server/free-ports.ts'
import { endProcess, identify, isAlive } from '../../../core/state/process-identity.ts'
import { becomesReady, localChannel } from '../../../scripts/dev-server/readiness.ts'
import { startProcess } from '../../../scripts/dev-server/start-process.ts'
import { startDevServer } from '../../../scripts/dev-server/start-dev-server.ts'
import type { StartDevServer } from '../../../scripts/dev-server/server-place.ts'
import type { DevServer } from '../../../scripts/dev-server/start-dev-server.ts'
import { runProgram } from './run-program.ts'

let dataDir: string
let pids: number[]
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'dev-server-'))
  pids = []
})
afterEach(async () => {
  const left = pids.map((pid) => identify(pid)).filter((identity) => identity !== undefined)
  for (const identity of left) await endProcess({ identity, graceMs: 0 })
  rmSync(dataDir, { recursive: true })
})

async function start(
  options: Omit<Partial<StartDevServer>, 'binary'> & { binary?: string } = {},
): Promise<DevServer> {
  const { binary = inject('temporalBinary'), ...others } = options
  const server = await startDevServer({
    dataDir,
    binary: () => Promise.resolve(binary),
    ui: false,
    ...others,
  })
  pids.push(server.pid)
  return server
}

/** Another command with the server of the folder. */
async function startElsewhere() {
  const { child, ended, says } = runProgram({
    program: 'test/system/command-line/probes/serve.ts',
    words: [dataDir, inject('temporalBinary')],
    detached: true,
  })
  let words = ''
  child.stderr.on('data', (text: string) => (words += text))
  if (child.pid !== undefined) pids.push(child.pid)
  await says('}')
  const server = JSON.parse(words) as Pick<DevServer, 'pid' | 'address' | 'origin'>
  pids.push(server.pid)
  return { child, ended, server }
}

async function withClient<Result>(
  address: string,
  use: (client: Client) => Promise<Result>,
): Promise<Result> {
  const connection = await Connection.connect({ address, ...localChannel })
  try {
    return await use(new Client({ connection }))
  } finally {
    await connection.close()
  }
}

const startRun = (address: string, workflowId: string) =>
  withClient(address, (client) =>
    client.workflow.start('exportData', {
      workflowId,
      taskQueue: 'nobody',
      typedSearchAttributes: [{ key: defineSearchAttributeKey('Verdict', 'KEYWORD'), value: 'proven' }],
    }),
  )

const verdictOf = (address: string, workflowId: string) =>
  withClient(address, async (client) => {
    const { typedSearchAttributes } = await client.workflow.getHandle(workflowId).describe()
    return typedSearchAttributes.get(defineSearchAttributeKey('Verdict', 'KEYWORD'))
  })

describe('the dev server', () => {
  it('takes runs with our search attributes as soon as it is there, and keeps them in the data folder', async () => {
    const first = await start()
    await startRun(first.address, 'export-1')
    await first.stop()
    expect(identify(first.pid)).toBeUndefined()

    const second = await start()
    expect([first.origin, second.origin]).toEqual(['started', 'started'])
    expect(await verdictOf(second.address, 'export-1')).toBe('proven')
    await second.stop()
    await second.stop()
  })

  it.runIf(process.platform === 'linux')(
    'leaves no file of the data folder open in the watcher, which ends a moment after it',
    async () => {
      const server = await start()
      const { pid } = server
      const watchers = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
      expect(watchers).toHaveLength(1)
      const open = readdirSync(`/proc/${watchers[0]}/fd`).map((fd) =>
        readlinkSync(`/proc/${watchers[0]}/fd/${fd}`),
      )
      expect(open).toContainEqual(expect.stringMatching(/^(pipe|socket):/))
      expect(open.filter((file) => file.startsWith(dataDir))).toEqual([])
      await server.stop()
    },
  )

  it('keeps them in the data folder whatever its name, and nothing outside', async () => {
    const named = join(dataDir, `Cliente #1 ?x=%41 "ñ's" \\ [*]`)
    const first = await start({ dataDir: named })
    await startRun(first.address, 'export-1')
    await first.stop()
    const again = await start({ dataDir: named })
    expect(await verdictOf(again.address, 'export-1')).toBe('proven')
    expect(readdirSync(dataDir)).toEqual([basename(named)])
    await again.stop()
  })

  it('shows the UI where it says', async () => {
    const server = await start({ ui: true })
    expect((await fetch(server.uiUrl ?? '')).status).toBe(200)
    await server.stop()
  })

  it('is started again, on other ports, where it ended for a reason that is not known', async () => {
    const binary = join(dataDir, 'temporal')
    const [ended, real] = [join(dataDir, 'ended'), inject('temporalBinary')]
    writeFileSync(
      binary,
      `#!/bin/sh\ncase "$*" in *--db-filename*) [ -e '${ended}' ] || { : > '${ended}'; exit 2; };; esac\nexec '${real}' "$@"\n`,
      { mode: 0o755 },
    )
    const choosePorts = vi.fn(async () => {
      const [grpc = 0, ui = 0] = await freePorts(2)
      return { grpc, ui }
    })
    await (await start({ binary, choosePorts })).stop()
    expect(choosePorts).toHaveBeenCalledTimes(2)
  })

  it('has ended, and can be started again, where it ends before anybody looks at it', async () => {
    const binary = join(dataDir, 'temporal')
    writeFileSync(binary, '#!/bin/sh\ncase "$*" in *--help) exit 0;; *) exit 2;; esac\n', { mode: 0o755 })
    const { closeSync } = fs
    onTestFinished(() => {
      fs.closeSync = closeSync
      syncBuiltinESMExports()
    })
    // Right after the start, this thread has something else to do for as long as the server lives.
    fs.closeSync = (fd) => {
      closeSync(fd)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
    }
    syncBuiltinESMExports()
    const [grpc = 0, ui = 0] = await freePorts(2)
    const place = { database: join(dataDir, 'temporal.db'), logFile: join(dataDir, 'log') }
    const server = await startProcess({ binary, ...place, ports: { grpc, ui }, ui: false })
    await server.ended
    expect(isAlive(server.record)).toBe(false)
  })

  it('is shared with another command of the folder, which alone ends it', async () => {
    const { child, ended, server } = await startElsewhere()
    const shared = await start()
    expect({ ...shared, origin: server.origin }).toMatchObject(server)
    expect(shared.origin).toBe('shared')
    await shared.stop()
    await startRun(server.address, 'export-1')
    child.kill('SIGTERM')
    await ended
    expect(identify(server.pid)).toBeUndefined()
  })

  it('is started once by commands that come at the same moment', async () => {
    const servers = await Promise.all([start(), start(), startElsewhere().then(({ server }) => server)])
    expect(new Set(servers.map(({ pid }) => pid)).size).toBe(1)
    expect(servers.map(({ origin }) => origin).toSorted()).toEqual(['shared', 'shared', 'started'])
  })

  it('ends with its command, however that ended, and the next one finds its runs', async () => {
    const { child, ended, server } = await startElsewhere()
    await startRun(server.address, 'export-1')
    const identity = identify(server.pid)!
    child.kill('SIGKILL')
    await ended
    await vi.waitFor(() => expect(isAlive(identity)).toBe(false), { timeout: 10_000 })
    const next = await start()
    expect(next).toMatchObject({ origin: 'started' })
    expect(await verdictOf(next.address, 'export-1')).toBe('proven')
    await next.stop({ graceMs: 0 })
  })

  it('is not reached by the Ctrl-C that reaches its command', async () => {
    const { child, server } = await startElsewhere()
    const groupOf = (pid: number | undefined) =>
      readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[2]
    expect(groupOf(child.pid)).toBe(String(child.pid))
    expect(groupOf(server.pid)).toBe(String(server.pid))
  })

  it('is started again on the same port when it ends by itself', async () => {
    const server = await start()
    const { pid, address } = server
    await startRun(address, 'export-1')
    process.kill(pid, 'SIGKILL')
    await vi.waitFor(() => expect(server.pid).not.toBe(pid), { timeout: 20_000 })
    await server.ready()
    pids.push(server.pid)
    expect(await verdictOf(address, 'export-1')).toBe('proven')
    await server.stop({ graceMs: 0 })
  })

  it('takes other ports when another program was quicker to take the ones it chose', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    const [free = 0, ui = 0, otherUi = 0] = await freePorts(3)
    // The port of the UI is taken first, which only the server itself notices.
    const choices = [
      { grpc: free, ui: port },
      { grpc: port, ui },
      { grpc: free, ui: otherUi },
    ]
    const chosen: { grpc: number; ui: number }[] = []
    const choosePorts = async () => {
      // Other tests run beside this one, and may take a port that was free.
      const [grpc = 0, uiPort = 0] = await freePorts(2)
      const choice = choices.shift() ?? { grpc, ui: uiPort }
      chosen.push(choice)
      return choice
    }
    const server = await start({ ui: true, choosePorts })
    expect(choices).toEqual([])
    const last = chosen.at(-1)
    expect(server).toMatchObject({
      address: `127.0.0.1:${last?.grpc}`,
      uiUrl: `http://127.0.0.1:${last?.ui}`,
    })
    await server.stop({ graceMs: 0 })
    const ports = { grpc: port, ui }
    await expect(start({ ports })).rejects.toThrow(`another program uses its port ${port}`)
    await new Promise((resolve) => taken.close(resolve))
  })

  it('counts as ready only with our search attributes', async () => {
    const [port = 0] = await freePorts(1)
    const args = ['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--headless']
    const child = spawn(inject('temporalBinary'), args, { stdio: 'ignore' })
    if (child.pid !== undefined) pids.push(child.pid)
    const address = `127.0.0.1:${port}`
    await vi.waitFor(() => withClient(address, (client) => client.workflow.count()), { timeout: 10_000 })
    expect(await becomesReady({ address, isAlive: () => child.exitCode === null, timeoutMs: 500 })).toBe(
      false,
    )
  })

  it('comes back with its runs after it was killed itself', async () => {
    const killed = await start()
    await startRun(killed.address, 'export-1')
    process.kill(killed.pid, 'SIGKILL')
    await killed.stop()
    const fresh = await start()
    expect(fresh.origin).toBe('started')
    expect(await verdictOf(fresh.address, 'export-1')).toBe('proven')
    await fresh.stop()
  })

  it('never ends a process that only got the pid of an old server', async () => {
    const server = await start()
    const note = join(dataDir, 'dev-server', 'server.json')
    const record = JSON.parse(readFileSync(note, 'utf8')) as object
    await server.stop()
    // After the server: two processes of the same hundredth of a second differ in nothing but the pid.
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    await once(stranger, 'spawn')
    writeFileSync(note, JSON.stringify({ ...record, pid: stranger.pid }))
    await (await start()).stop()
    expect(identify(stranger.pid ?? 0)).toBeDefined()
    stranger.kill('SIGKILL')
    await once(stranger, 'exit')
  })

  it('is not the one of the folder that this one was copied from', async () => {
    const original = await start()
    const copy = mkdtempSync(join(tmpdir(), 'dev-server-'))
    cpSync(join(dataDir, 'dev-server', 'server.json'), join(copy, 'dev-server', 'server.json'))
    const own = await start({ dataDir: copy })
    expect(own.pid).not.toBe(original.pid)
    await own.stop()
    expect(identify(original.pid)).toBeDefined()
    await original.stop()
    rmSync(copy, { recursive: true })
  })

  it('says why it does not come up, in a sentence of its own, and leaves the folder free', async () => {
    writeFileSync(join(dataDir, 'temporal.db'), 'this is no database')
    await expect(start()).rejects.toThrow(
      /^The Temporal dev server ended at its start: its database \S+temporal\.db is damaged\. Move that file aside[^{]*temporal\.log$/,
    )
    rmSync(join(dataDir, 'temporal.db'))
    await (await start()).stop()
  })

  it.runIf(process.platform === 'linux')(
    'is told apart from an ended process that nobody has collected yet',
    async () => {
      // The shell starts a child and becomes something that never collects it.
      const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 61'])
      const [line] = (await once(parent.stdout, 'data')) as [Buffer]
      const pid = Number(String(line))
      await vi.waitFor(() => expect(readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n'))
      expect(identify(pid)).toBeDefined()
      process.kill(pid, 'SIGKILL')
      await vi.waitFor(() => expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) Z /))
      expect(identify(pid)).toBeUndefined()
      parent.kill('SIGKILL')
      await once(parent, 'exit')
    },
  )
})
