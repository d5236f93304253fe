import { shell } from '../../core/runs/view/shell.ts'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Given } from './environment.ts'
import { inFiles } from './secret-files.ts'

/** Which other users of the machine may read secrets and the data folder: none, the group, or all. */
export type AllowedReaders = 'false' | 'group' | 'true'

const refusedBits: Record<AllowedReaders, number> = { false: 0o077, group: 0o007, true: 0 }

/** The paths accessible to more users than allowed; none on Windows, where modes say nothing. */
export function findExposed(options: {
  paths: readonly string[]
  allowed: AllowedReaders
  /** The mode bits to check. */
  bits: number
}): string[] {
  const { paths, allowed, bits } = options
  if (process.platform === 'win32') return []
  const refused = refusedBits[allowed] & bits
  return paths.filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & refused) !== 0)
}

/** Other users of the machine can read or change a file that holds a secret; nothing was started. */
export class ReadableSecretsError extends Error {
  override readonly name = 'ReadableSecretsError'
  readonly exitCode = 2
  readonly hint: string
  constructor(files: readonly string[]) {
    super(`Other users of this machine can read or change what holds a secret: ${files.join(', ')}.`)
    this.hint =
      `Fix it with \`${shell`chmod go-rwx ${files}`}\`. Where the worker reads it as a member of its group, set ` +
      'CONNECTOR_ALLOW_READABLE_SECRETS=group; where no one else uses the machine, true.'
  }
}

/** The files that secrets were read from: one each, or `.env`. */
export function secretFilesOf(environment: ReadonlyMap<string, Given>): string[] {
  const files = [...environment].flatMap(([name, { text, from, folder }]) => {
    if (name === 'TEMPORAL_TLS_CLIENT_KEY_PATH') return [resolve(folder, text)]
    return secrets.includes(name) && from !== 'environment' ? [from] : []
  })
  return [...new Set(files)]
}

/** Our secrets, and those of the variables of Temporal, AWS and OpenTelemetry. */
const secrets = [
  ...inFiles,
  'TEMPORAL_API_KEY',
  'TEMPORAL_TLS_CLIENT_KEY_DATA',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
]

const readOrWrite = 0o666

/** @throws {ReadableSecretsError} */
export function refuseReadableSecrets(settings: {
  secretFiles: readonly string[]
  allowReadableSecrets: AllowedReaders
}): void {
  const { secretFiles: paths, allowReadableSecrets: allowed } = settings
  const exposed = findExposed({ paths, allowed, bits: readOrWrite })
  if (exposed.length > 0) throw new ReadableSecretsError(exposed)
}
