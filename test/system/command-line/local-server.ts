import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inject } from 'vitest'
import { readServerRecord } from '../../../scripts/dev-server/server-record.ts'
import { local, until, type World } from '../export/world.ts'

export const recordOf = (world: World) => readServerRecord(join(world.dataDir, 'dev-server'))

export async function serverOf(world: World) {
  await until(() => recordOf(world) !== undefined)
  return recordOf(world)!
}

/** A command line of Temporal that starts no more servers once the file `broken` is beside it. */
export async function breakableBinary(world: World) {
  const binary = join(world.dataDir, 'temporal')
  const broken = join(world.dataDir, 'broken')
  const script = `#!/bin/sh\n[ -e '${broken}' ] && exit 1\nexec '${inject('temporalBinary')}' "$@"\n`
  await writeFile(binary, script)
  await chmod(binary, 0o755)
  return { env: { ...local, TEMPORAL_CLI_PATH: binary }, breakIt: () => writeFile(broken, '') }
}
