import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { shell } from '../../core/runs/view/shell.ts'
import { nearestName } from '../../core/tables/nearest-name.ts'
import { invisible, oddLetter, placeOf, type SetVariable } from './environment.ts'
import { described, foreignVariables, inFiles } from './variables.ts'

/** The variables of other programs that exist in no other case and with no letter less, as HTTPS_PROXY does. */
const foreignNames = Object.keys(foreignVariables)
  .flatMap((names) => names.split(', '))
  .filter((name) => /^(TEMPORAL|AWS)_/.test(name))

/**
 * Variables that are ours but for invisible letters, case, look-alikes or one letter, and those with one of our
 * prefixes and a name close to one of ours. They would be ignored without a word.
 */
export function findSlips(environment: ReadonlyMap<string, SetVariable>): string[] {
  const ours = described.flatMap(([name]) => [name, ...(inFiles.includes(name) ? [`${name}_FILE`] : [])])
  const known = [...ours, ...foreignNames]
  return [...environment].flatMap(([name, set]) => {
    if (known.includes(name)) return []
    const meant = known.find((one) => isSlip(name, one)) ?? nearestOf(name, ours) ?? testModeOf(name, set)
    if (meant === undefined) return []
    return [`${name} in ${placeOf(set)}${oddLetter(name)} is not a setting; did you mean ${meant}?`]
  })
}

/** Whether a name is the other but for case, separators, foreign letters, or one letter more, less, other or swapped. */
function isSlip(name: string, known: string): boolean {
  const plain = name.toUpperCase().replaceAll(/[-.]/g, '_').replaceAll(new RegExp(invisible, 'g'), '')
  const letters = plain.split('')
  const isAsLong = letters.length === known.length
  const from = letters.map((letter, index) => (isAsLong && letter > '\x7f' ? known[index]! : letter)).join('')
  const same = known.split('').findIndex((letter, index) => letter !== from[index])
  const [rest, wanted] = same === -1 ? [from.slice(known.length), ''] : [from.slice(same), known.slice(same)]
  const [first = '', second = ''] = wanted
  return (
    rest.slice(1) === wanted ||
    rest.slice(1) === wanted.slice(1) ||
    rest === wanted.slice(1) ||
    rest === `${second}${first}${wanted.slice(2)}`
  )
}

/** Other names that people give the mode: ignored, they would let an import change what is live. */
function testModeOf(name: string, { from }: SetVariable): 'BILLING_TEST_MODE' | undefined {
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
export function secretFilesOf(environment: ReadonlyMap<string, SetVariable>): string[] {
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

/** Names the files with secrets that other users of the machine can read or change, and the fix; undefined for none. */
export function tellReadableSecrets({ secretFiles }: { secretFiles: readonly string[] }): string | undefined {
  const files = findExposed(secretFiles, 0o066)
  if (files.length === 0) return undefined
  return `Other users of this machine can read or change what holds a secret: ${files.join(', ')}. Fix it with \`${shell`chmod go-rwx ${files}`}\`.`
}
