import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { shell } from '../../core/runs/view/shell.ts'
import { nearestName } from '../../core/tables/nearest-name.ts'
import { codePointOf, invisible, placeOf, type Given } from './environment.ts'
import { described, foreignVariables, inFiles } from './variables.ts'

/** The variables of other programs that exist in no other case and with no letter less, as HTTPS_PROXY does. */
const foreignNames = Object.keys(foreignVariables)
  .flatMap((names) => names.split(', '))
  .filter((name) => /^(TEMPORAL|AWS)_/.test(name))

/**
 * Variables that are ours but for invisible letters, case, look-alikes or one letter, and those with one of our
 * prefixes and a name close to one of ours. They would be ignored without a word.
 */
export function findSlips(environment: ReadonlyMap<string, Given>): string[] {
  const ours = described.flatMap(([name]) => [name, ...(inFiles.includes(name) ? [`${name}_FILE`] : [])])
  const known = [...ours, ...foreignNames]
  return [...environment].flatMap(([name, given]) => {
    if (known.includes(name)) return []
    const meant = known.find((one) => isSlip(name, one)) ?? nearestOf(name, ours) ?? testModeOf(name, given)
    if (meant === undefined) return []
    const letter = /[^\x20-\x7e]/u.exec(name)?.[0]
    const odd = letter === undefined ? '' : ` (it has the letter ${codePointOf(letter)})`
    return [`${name} in ${placeOf(given)}${odd} is not a setting; did you mean ${meant}?`]
  })
}

/** Whether a name is the other but for case, separators, foreign letters, or one letter more, less, other or swapped. */
function isSlip(name: string, known: string): boolean {
  const from = name
    .toUpperCase()
    .replaceAll(/[-.]/g, '_')
    .split('')
    .filter((letter) => !invisible.test(letter))
  const to = known.split('')
  if (from.length === to.length && from.every((letter, at) => letter > '\x7f' || letter === to[at]))
    return true
  const at = from.findIndex((letter, index) => letter !== to[index])
  const rest = (letters: readonly string[], skipped: number) => letters.slice(at + skipped).join('')
  if (at === -1) return from.length === to.length - 1
  return (
    rest(from, 1) === rest(to, 1) ||
    rest(from, 1) === rest(to, 0) ||
    rest(from, 0) === rest(to, 1) ||
    (rest(from, 2) === rest(to, 2) && from[at] === to[at + 1] && from[at + 1] === to[at])
  )
}

/** Other names that people give the mode: ignored, they would let an import change what is live. */
function testModeOf(name: string, { from }: Given): 'BILLING_TEST_MODE' | undefined {
  const bare = name.replace(/^(BILLING|CONNECTOR)_/, '')
  if (bare === name)
    return from !== 'environment' && /^TEST_?MODE$/.test(name) ? 'BILLING_TEST_MODE' : undefined
  return /^((TEST|LIVE|SANDBOX)(_?MODE)?|MODE)$/.test(bare) ? 'BILLING_TEST_MODE' : undefined
}

function nearestOf(name: string, ours: readonly string[]): string | undefined {
  const prefix = /^(BILLING|CONNECTOR)_/.exec(name)?.[0]
  if (prefix === undefined) return undefined
  const endings = ours.flatMap((one) => (one.startsWith(prefix) ? [one.slice(prefix.length)] : []))
  const nearest = nearestName(name.slice(prefix.length), endings)
  return nearest === undefined ? undefined : `${prefix}${nearest}`
}

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
