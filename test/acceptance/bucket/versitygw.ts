import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openCacheFolder } from '../../../worker/cache-folder.js'
import { missingPrograms } from '../programs.ts'

/** The version in versitygw/go.mod. */
const version = '1.8.0'

/** Where the S3 gateway is kept, which the tests use as an object store. */
export const versitygw = () => join(openCacheFolder(), `versitygw-${version}`, 'versitygw')

/** Builds the gateway once from its Go modules, which takes a few minutes. */
export default async function setup(): Promise<void> {
  const file = versitygw()
  if (existsSync(file) || missingPrograms().some(({ names }) => names.includes('go'))) return
  mkdirSync(dirname(file), { recursive: true })
  process.stderr.write('Building the S3 gateway of the tests from its Go modules (once)\n')
  const fresh = `${file}.${process.pid}`
  const words = ['build', '-mod=readonly', '-ldflags=-s -w', '-o', fresh]
  try {
    await promisify(execFile)('go', [...words, 'github.com/versity/versitygw/cmd/versitygw'], {
      cwd: fileURLToPath(new URL('./versitygw/', import.meta.url)),
      env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' },
      maxBuffer: 2 ** 26,
    })
    renameSync(fresh, file)
  } finally {
    rmSync(fresh, { force: true })
  }
}
