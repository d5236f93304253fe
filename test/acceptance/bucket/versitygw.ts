import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildGoProgram } from '../../../scripts/dev-server/build-binary.ts'
import { openCacheFolder } from '../../../worker/cache-folder.ts'
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
  const reason = await buildGoProgram({
    folder: fileURLToPath(new URL('./versitygw/', import.meta.url)),
    program: 'github.com/versity/versitygw/cmd/versitygw',
    file,
  })
  if (reason !== undefined) throw new Error(`No S3 gateway: ${reason}.`)
}
