import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { openCacheFolder } from '../../../worker/cache-folder.js'
import { missingPrograms } from '../programs.ts'

const version = '1.8.0'

/** Where the S3 gateway is kept, which the tests use as an object store. */
export const versitygw = () => join(openCacheFolder(), `versitygw-${version}`, 'versitygw')

/** Builds the gateway once from its Go modules, which takes a few minutes. */
export default async function setup(): Promise<void> {
  const file = versitygw()
  if (existsSync(file) || missingPrograms().some(({ names }) => names.includes('go'))) return
  const folder = dirname(file)
  mkdirSync(folder, { recursive: true })
  process.stderr.write('Building the S3 gateway of the tests from its Go modules (once)\n')
  const fresh = mkdtempSync(join(folder, 'bin-'))
  try {
    const module = `github.com/versity/versitygw/cmd/versitygw@v${version}`
    await promisify(execFile)('go', ['install', '-ldflags=-s -w', module], {
      env: { ...process.env, CGO_ENABLED: '0', GOBIN: fresh, GOFLAGS: '', GOWORK: 'off' },
      maxBuffer: 2 ** 26,
    })
    renameSync(join(fresh, 'versitygw'), file)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}
