import { shell } from '../../core/runs/view/shell.ts'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Given } from './environment.ts'
import { variables, type Variable } from './variables.ts'

/** Of Temporal's own variables, those that are secrets, and those that name a file with one. */
const temporalSecrets = ['TEMPORAL_API_KEY', 'TEMPORAL_TLS_CLIENT_KEY_DATA']
const secretPaths = ['BILLING_TOKEN_FILE', 'TEMPORAL_TLS_CLIENT_KEY_PATH']

/** Every user of the machine can read a file that holds a secret; nothing was begun. */
export class ReadableSecretsError extends Error {
  override readonly name = 'ReadableSecretsError'
  readonly exitCode = 2
  readonly hint: string
  constructor(files: readonly string[]) {
    super(`Every user of this machine can read what holds a secret: ${files.join(', ')}.`)
    this.hint = `Fix it with \`${shell`chmod o-rwx ${files}`}\`, or set CONNECTOR_ALLOW_READABLE_SECRETS=true where no one else uses the machine.`
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

/** Those that everybody on this machine may read. On Windows a file's mode says nothing of that. */
function findReadable(files: readonly string[]): string[] {
  if (process.platform === 'win32') return []
  return files.filter((file) => ((statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o004) !== 0)
}

/** @throws {ReadableSecretsError} */
export function refuseReadableSecrets(settings: {
  secretFiles: readonly string[]
  allowReadableSecrets: boolean
}): void {
  const readable = findReadable(settings.secretFiles)
  if (readable.length > 0 && !settings.allowReadableSecrets) throw new ReadableSecretsError(readable)
}
