import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { buildBinary } from '../../../scripts/dev-server/build-binary.ts'
import { cliVersion, findBinary } from '../../../scripts/dev-server/find-binary.ts'
import type { Obtain } from '../../../scripts/dev-server/obtain.ts'
import type { FindBinary } from '../../../scripts/dev-server/find-binary.ts'

let folder: string
let tasks: string[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'find-binary-'))
  tasks = []
})
afterEach(() => rmSync(folder, { recursive: true }))

const startTask = (title: string) => {
  tasks.push(title)
  return { end: () => void tasks.push('end') }
}

const find = (options: Partial<FindBinary> = {}) =>
  findBinary({ env: { PATH: '', XDG_CACHE_HOME: folder }, startTask, ways: [], ...options })

function program(...path: string[]): string {
  const file = join(folder, ...path)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, '')
  chmodSync(file, 0o755)
  return file
}

const cached = ['billing-connector', `temporal-${cliVersion}`, 'temporal']
const writes: Obtain = ({ file }) => {
  writeFileSync(file, 'binary', { mode: 0o755 })
  return Promise.resolve(undefined)
}
const refuses =
  (reason: string): Obtain =>
  () =>
    Promise.resolve(reason)

describe('the binary of the dev server', () => {
  it('is the one that is named, else the one on PATH, else the kept one', async () => {
    const named = program('named')
    const onPath = program('bin', 'temporal')
    const kept = program(...cached)
    const env = { PATH: `:${join(folder, 'none')}:${join(folder, 'bin')}`, XDG_CACHE_HOME: folder }
    program('temporal')
    const before = process.cwd()
    process.chdir(folder)
    onTestFinished(() => process.chdir(before))
    expect(await find({ env, cliPath: named })).toBe(named)
    expect(await find({ env })).toBe(onPath)
    expect(await find()).toBe(kept)
    expect(tasks).toEqual([])
  })

  it('is refused where the named one cannot be run, whatever else there is', async () => {
    program(...cached)
    const plain = join(folder, 'plain')
    writeFileSync(plain, '')
    for (const cliPath of [plain, folder, join(folder, 'absent')]) {
      await expect(find({ cliPath })).rejects.toThrow(
        `TEMPORAL_CLI_PATH names ${cliPath}, which is not an executable file`,
      )
    }
  })

  it('is got by the first way that works, and kept', async () => {
    const file = await find({ ways: [refuses('no network'), writes] })
    expect(file).toBe(join(folder, ...cached))
    expect(await find()).toBe(file)
  })

  it('is got once by those who need it at the same moment', async () => {
    let times = 0
    const slowly: Obtain = async (options) => {
      times += 1
      await vi.waitFor(() => expect(tasks).toHaveLength(1))
      return writes(options)
    }
    const files = await Promise.all([find({ ways: [slowly] }), find({ ways: [slowly] })])
    expect({ files: new Set(files).size, times }).toEqual({ files: 1, times: 1 })
    expect(tasks).toEqual([
      'Waiting for another command that downloads or builds the Temporal dev server',
      'end',
    ])
  })

  it('is missed in one sentence: what was tried, and what to install or set', async () => {
    await expect(
      find({ ways: [refuses('the download failed'), refuses('Go is not installed')] }),
    ).rejects.toThrow(
      /TEMPORAL_CLI_PATH is not set.*PATH; the download failed; Go is not installed\. Install .*Go 1\.26/,
    )
    expect(existsSync(join(folder, ...cached))).toBe(false)
  })

  it('is built from the version that it is kept under', () => {
    const module = readFileSync(
      new URL('../../../scripts/dev-server/temporal-cli/go.mod', import.meta.url),
      'utf8',
    )
    expect(module).toContain(`require github.com/temporalio/cli v${cliVersion}\n`)
  })

  it('is not left incomplete when a build fails, and the reason is reported', async () => {
    const go = program('go-that-fails', 'go')
    writeFileSync(
      go,
      '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho half > "$2"\necho "no space left" >&2\nexit 1\n',
    )
    const before = process.env['PATH']
    try {
      process.env['PATH'] = `${join(go, '..')}:${before}`
      expect(await buildBinary({ file: join(folder, 'built'), startTask })).toBe(
        'the build with Go failed (no space left)',
      )
      process.env['PATH'] = folder
      expect(await buildBinary({ file: join(folder, 'built'), startTask })).toBe(
        'Go, which builds it, is not installed',
      )
    } finally {
      process.env['PATH'] = before
    }
    expect(readdirSync(folder).filter((name) => name.startsWith('built'))).toEqual([])
    expect(tasks.filter((word) => word === 'end')).toHaveLength(2)
  })
})
