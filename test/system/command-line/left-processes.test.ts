import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { endLeftProcesses } from '../../left-processes.ts'

test.runIf(process.platform === 'linux')(
  'a process that a test run leaves behind is found by the run’s folder, and ended',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'left-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    expect(await endLeftProcesses(folder, { graceMs: 0 })).toEqual([])
    const child = spawn('sleep', ['60'], { stdio: 'ignore', env: { ...process.env, SOME_FOLDER: folder } })
    const exited = once(child, 'exit')
    await once(child, 'spawn')
    expect(await endLeftProcesses(folder, { graceMs: 0 })).toEqual([`${child.pid} sleep 60`])
    expect(await exited).toEqual([null, 'SIGKILL'])
  },
)
