import { shell } from '../../core/runs/view/shell.ts'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Given } from './environment.ts'
import { variables, type Variable } from './variables.ts'

/** Of Temporal's own variables, those that are secrets, and those that name a file with one. */
const temporalSecrets = ['TEMPORAL_API_KEY', 'TEMPORAL_TLS_CLIENT_KEY_DATA']
const secretPaths = ['BILLING_TOKEN_FILE', 'TEMPORAL_TLS_CLIENT_KEY_PATH']

/** Which other users of the machine may read secrets and the data folder: nobody, the group, or everybody. */
export type AllowedReaders = 'false' | 'group' | 'true'

const refusedBits: Record<AllowedReaders, number> = { false: 0o077, group: 0o007, true: 0 }

/** Of the paths, those that more users may use than are allowed. On Windows a mode says nothing of that. */
export function findExposed(options: {
  paths: readonly string[]
  allowed: AllowedReaders
  /** The bits of a mode that matter. */
  bits: number
}): string[] {
  const { paths, allowed, bits } = options
  if (process.platform === 'win32') return []
  const refused = refusedBits[allowed] & bits
  return paths.filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & refused) !== 0)
}

/** Other users of the machine can read or change a file that holds a secret; nothing was begun. */
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

/** The files that secrets were taken from: one each, or `.env`. */
export function secretFilesOf(environment: ReadonlyMap<string, Given>): string[] {
  const named = secretPaths.flatMap((name) => {
    const given = environment.get(name)
    return given === undefined ? [] : [resolve(given.folder, given.text)]
  })
  const taken = [...environment].flatMap(([name, { from }]) =>
    isSecret(name) && from !== 'environment' ? [from] : [],
  )
  return [...new Set([...named, ...taken])]
}

const isSecret = (name: string) =>
  temporalSecrets.includes(name) || (variables as Record<string, Variable>)[name]?.secret === true

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
