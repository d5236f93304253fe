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

/** The paths that the group or other users may access in the ways of `bits`; none on Windows, where modes say nothing. */
export const findExposed = (paths: readonly string[], bits: number): string[] =>
  process.platform === 'win32'
    ? []
    : paths.filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & bits) !== 0)

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

const readOrWrite = 0o066

/** Names the files with secrets that other users of the machine can read or change, and the fix; undefined for none. */
export function tellReadableSecrets({ secretFiles }: { secretFiles: readonly string[] }): string | undefined {
  const files = findExposed(secretFiles, readOrWrite)
  if (files.length === 0) return undefined
  return `Other users of this machine can read or change what holds a secret: ${files.join(', ')}. Fix it with \`${shell`chmod go-rwx ${files}`}\`.`
}
