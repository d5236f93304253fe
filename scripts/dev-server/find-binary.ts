import type { StartTask, Obtain } from './obtain.ts'
import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FolderLockedError } from '../../core/state/errors.ts'
import { acquireLock } from '../../core/state/data-folder-lock.ts'
import { openCacheFolder } from '../../worker/cache-folder.ts'
import { buildBinary } from './build-binary.ts'
import { downloadBinary } from './download-binary.ts'

/** The version that is downloaded or built; temporal-cli/go.mod names the same. */
export const cliVersion = '1.8.2'

const ourFolder = `temporal-${cliVersion}`

/** Whether a CLI is the version that is downloaded or built. */
export const isOurVersion = (binary: string): boolean => basename(dirname(binary)) === ourFolder

export interface FindBinary {
  /** TEMPORAL_CLI_PATH: used, or refused with an error, but never ignored. */
  cliPath?: string | undefined
  env: Readonly<Record<string, string | undefined>>
  startTask: StartTask
  /** The ways to obtain the CLI, in order. Default: the SDK's download, then a build with Go. */
  ways?: readonly Obtain[]
}

export class NoBinaryError extends Error {
  override name = 'NoBinaryError' as const
  readonly exitCode = 2
}

/**
 * Finds the Temporal CLI, which contains the dev server: TEMPORAL_CLI_PATH, else `temporal` on PATH, else one kept
 * from an earlier download or build, else downloaded, else built. Two processes never download or build at once.
 *
 * @throws {NoBinaryError} TEMPORAL_CLI_PATH is not executable, or the CLI can be neither downloaded nor built
 */
export async function findBinary(options: FindBinary): Promise<string> {
  const { cliPath, env } = options
  if (cliPath !== undefined) {
    if (isExecutable(cliPath)) return cliPath
    throw new NoBinaryError(
      `TEMPORAL_CLI_PATH names ${cliPath}, which is not an executable file; correct or unset it.`,
    )
  }
  const onPath = (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, 'temporal'))
  const found = onPath.find(isExecutable)
  if (found !== undefined) return found
  const file = join(openCacheFolder(env), ourFolder, 'temporal')
  return isExecutable(file) ? file : await obtainOnce({ ...options, file })
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

async function obtainOnce(options: FindBinary & { file: string }): Promise<string> {
  const folder = join(options.file, '..')
  mkdirSync(folder, { recursive: true })
  const lock = await waitForLock({ folder, file: options.file, startTask: options.startTask })
  try {
    return existsSync(options.file) ? options.file : await obtain(options)
  } finally {
    lock?.release()
  }
}

/** Waits for the lock; undefined if its previous holder has provided the binary. */
async function waitForLock({
  folder,
  file,
  startTask,
}: {
  folder: string
  file: string
  startTask: StartTask
}) {
  let task: { end(): void } | undefined
  try {
    for (;;) {
      if (existsSync(file)) return undefined
      try {
        return acquireLock({ folder, role: 'command that builds the Temporal dev server' })
      } catch (error) {
        if (!(error instanceof FolderLockedError)) throw error
        task ??= startTask('Waiting for another command that downloads or builds the Temporal dev server')
        await sleep(250)
      }
    }
  } finally {
    task?.end()
  }
}

async function obtain({
  file,
  startTask,
  ways = [downloadBinary, buildBinary],
}: FindBinary & { file: string }) {
  const reasons: string[] = []
  for (const way of ways) {
    const reason = await way({ file, startTask })
    if (reason === undefined) return file
    reasons.push(reason)
  }
  throw new NoBinaryError(
    `No Temporal dev server: TEMPORAL_CLI_PATH is not set, there is no \`temporal\` on PATH; ${reasons.join('; ')}. ` +
      'Install the Temporal CLI or Go 1.26.4, or set TEMPORAL_CLI_PATH.',
  )
}
