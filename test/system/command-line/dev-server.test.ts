import { Client, Connection } from '@temporalio/client'
import { defineSearchAttributeKey } from '@temporalio/common'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs, {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { endProcess, identify, isAlive } from '../../../core/state/process-identity.ts'
import { becomesReady, localChannel } from '../../../scripts/dev-server/readiness.ts'
import { freePorts } from '../../../worker/free-ports.ts'
import { findServer, serverPaths } from '../../../scripts/dev-server/server-record.ts'
import {
  type DevServer,
  DevServerError,
  spawnServer,
  startDevServer,
  type StartDevServer,
} from '../../../scripts/dev-server/start-dev-server.ts'

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
    ...others,
  })
  pids.push(server.pid)
  return server
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
  it('takes runs with our search attributes as soon as it is ready, and keeps them in the data folder whatever its name, and nothing outside', async () => {
    const named = join(dataDir, `Cliente #1 ?x=%41 "ñ's" \\ [*]`)
    const first = await start({ dataDir: named })
    await startRun(first.address, 'export-1')
    expect(findServer(named)).toMatchObject({ pid: first.pid, address: first.address })
    await first.stop()
    expect(identify(first.pid)).toBeUndefined()
    expect(findServer(named)).toBeUndefined()

    const second = await start({ dataDir: named })
    expect(await verdictOf(second.address, 'export-1')).toBe('proven')
    expect(readdirSync(dataDir)).toEqual([basename(named)])
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

  it('counts as ended if it ends before anybody has looked at it', async () => {
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
    mkdirSync(serverPaths(dataDir).folder)
    const [grpc = 0, ui = 0] = await freePorts(2)
    const server = spawnServer({ binary, dataDir, ports: { grpc, ui } })
    await server.ended
    expect(isAlive(server.record)).toBe(false)
  })

  it('is refused to a second command on the same data folder, also at the same moment', async () => {
    const starts = await Promise.allSettled([start(), start()])
    const [server] = starts.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    expect(starts.filter(({ status }) => status === 'rejected')).toMatchObject([
      {
        reason: {
          name: 'ServerInUseError',
          exitCode: 2,
          message: `Another command (pid ${process.pid}) runs the Temporal dev server of the data folder ${dataDir}.`,
        },
      },
    ])
    await server?.stop()
    await (await start()).stop()
  })

  it('is never two on one database, even if the owner of the first was killed', async () => {
    const server = await start()
    const record = readFileSync(serverPaths(dataDir).recordFile, 'utf8')
    // A killed owner leaves this for a moment: a live server, its record, and no lock.
    const orphan = spawn('sleep', ['60'])
    await once(orphan, 'spawn')
    await server.stop()
    const ended = once(orphan, 'exit')
    writeFileSync(
      serverPaths(dataDir).recordFile,
      JSON.stringify({ ...JSON.parse(record), ...identify(orphan.pid ?? 0) }),
    )
    const next = await start()
    await ended
    await next.stop()
  })

  it('says that it ended, whatever error that caused in the work that needed it', async () => {
    const server = await start()
    const ended = /^The Temporal dev server ended while it was in use\. Its log: \S+temporal\.log$/
    const working = server.during(() => {
      process.kill(server.pid, 'SIGKILL')
      return startRun(server.address, 'export-1')
    })
    await expect(working).rejects.toThrow(ended)
    await expect(server.during(() => new Promise(() => undefined))).rejects.toThrow(ended)
    expect(server.lost.reason).toBeInstanceOf(DevServerError)
    expect(findServer(dataDir)).toBeUndefined()
    await server.stop()
    const other = await start()
    await expect(
      other.during(() => Promise.reject(new Error('the error of the work itself'))),
    ).rejects.toThrow('the error of the work itself')
    await other.stop()
    expect(other.lost.aborted).toBe(false)
  })

  it('takes other ports if another program was quicker to take the ones it chose', async () => {
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
    const server = await start({ choosePorts })
    expect(choices).toEqual([])
    const last = chosen.at(-1)
    expect(server).toMatchObject({
      address: `127.0.0.1:${last?.grpc}`,
      uiUrl: `http://127.0.0.1:${last?.ui}`,
    })
    await server.stop()
    await expect(start({ choosePorts: () => Promise.resolve({ grpc: port, ui }) })).rejects.toThrow(
      `another program uses its port ${port}`,
    )
    await new Promise((resolve) => taken.close(resolve))
  })

  it('starts again after a crash at its start, as when a port is taken that it chose itself', async () => {
    const crashes = join(dataDir, 'crashes')
    const binary = join(dataDir, 'crashing')
    const real = inject('temporalBinary')
    const lines = [
      '#!/bin/sh',
      `echo >>'${crashes}'`,
      `[ $(wc -l <'${crashes}') -gt "$(cat '${crashes}.most')" ] && exec '${real}' "$@"`,
      'echo "panic: runtime error: invalid memory address or nil pointer dereference"',
      'exit 2',
    ]
    writeFileSync(binary, lines.join('\n'), { mode: 0o755 })
    writeFileSync(`${crashes}.most`, '2')
    await (await start({ binary })).stop()
    writeFileSync(`${crashes}.most`, '99')
    await expect(start({ binary })).rejects.toThrow(
      /ended at its start for no reason that is known here; the last line of its log is: panic: runtime error.*temporal\.log$/,
    )
    expect(readFileSync(crashes, 'utf8')).toHaveLength(3 + 5)
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

  it('makes its database again if it was killed before the first one was complete', async () => {
    const binary = join(dataDir, 'killed')
    writeFileSync(binary, '#!/bin/sh\n: >temporal.db\nkill -KILL $$\n', { mode: 0o755 })
    await expect(start({ binary })).rejects.toThrow('ended at its start')
    const server = await start()
    await startRun(server.address, 'export-1')
    await server.stop()
    const again = await start()
    expect(await verdictOf(again.address, 'export-1')).toBe('proven')
    await again.stop()
  })

  it('keeps a database with runs that was put where no first one became complete', async () => {
    const server = await start()
    await startRun(server.address, 'export-1')
    await server.stop()
    const names = readdirSync(dataDir).filter((name) => name.startsWith('temporal.db'))
    const backup = join(dataDir, 'backup')
    mkdirSync(backup)
    for (const name of names) renameSync(join(dataDir, name), join(backup, name))
    const binary = join(dataDir, 'ends')
    writeFileSync(binary, '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    await expect(start({ binary })).rejects.toThrow('ended at its start')
    for (const name of names) renameSync(join(backup, name), join(dataDir, name))
    const again = await start()
    expect(await verdictOf(again.address, 'export-1')).toBe('proven')
    await again.stop()
  })

  it('is not confused with a process that only got the pid of an old server', async () => {
    const server = await start()
    const { recordFile } = serverPaths(dataDir)
    const record = JSON.parse(readFileSync(recordFile, 'utf8')) as object
    await server.stop()
    // After the server: two processes of the same hundredth of a second differ in nothing but the pid.
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    await once(stranger, 'spawn')
    writeFileSync(recordFile, JSON.stringify({ ...record, pid: stranger.pid }))
    expect(findServer(dataDir)).toBeUndefined()
    await (await start()).stop()
    expect(identify(stranger.pid ?? 0)).toBeDefined()
    stranger.kill('SIGKILL')
    await once(stranger, 'exit')
  })

  it('is not the one of the folder that this one was copied from', async () => {
    const original = await start()
    const copy = mkdtempSync(join(tmpdir(), 'dev-server-'))
    cpSync(join(dataDir, 'dev-server', 'server.json'), join(copy, 'dev-server', 'server.json'))
    expect(findServer(copy)).toBeUndefined()
    const own = await start({ dataDir: copy })
    expect(own.pid).not.toBe(original.pid)
    await own.stop()
    expect(identify(original.pid)).toBeDefined()
    await original.stop()
    rmSync(copy, { recursive: true })
  })

  it('says in one sentence why it did not start, and leaves the folder free', async () => {
    writeFileSync(join(dataDir, 'temporal.db'), 'this is not a database')
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
      await expect.poll(() => readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n')
      expect(identify(pid)).toBeDefined()
      process.kill(pid, 'SIGKILL')
      await expect.poll(() => readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) Z /)
      expect(identify(pid)).toBeUndefined()
      parent.kill('SIGKILL')
      await once(parent, 'exit')
    },
  )
})
