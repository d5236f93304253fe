import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isSystemError } from '../../core/storage/system-errors.ts'

/** Every setting that is wrong or missing, one sentence each. */
export class SettingsError extends Error {
  override name = 'SettingsError' as const
  readonly exitCode = 2
  readonly hint = 'docs/configuration.md describes every variable.'
  readonly problems: readonly string[]

  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(problems.join(' '), options)
    this.problems = problems
  }
}

export type Environment = Readonly<Record<string, string | undefined>>

/** A variable's text and where it was set. */
export interface Given {
  text: string
  /** The environment, a default, or the path of a file. */
  from: 'environment' | 'default' | (string & {})
  /** The folder to which its relative paths refer. */
  folder: string
}

export interface EnvironmentSource {
  /** The real environment; overrides the file. */
  env: Environment
  /** Default: `.env` in `cwd`. A file named here must exist. */
  envFile?: string
  /** The folder that the process runs in. */
  cwd: string
}

/**
 * All variables that are set, in the real environment or in the `.env` file. An empty variable counts as
 * unset, so it does not hide the file's. Paths in the real environment are relative to the caller's folder
 * (INIT_CWD under npm), those in the file to the file's own folder: the ledger must not move with the folder
 * a command is called from.
 * @throws {SettingsError} the file cannot be read, or has a line that is no setting
 */
export function readEnvironment(source: EnvironmentSource): Map<string, Given> {
  const caller = source.env['INIT_CWD'] || source.cwd
  const file = source.envFile ?? join(source.cwd, '.env')
  const content = readText(file, { required: source.envFile !== undefined })
  const written = content === undefined ? {} : parseEnvFile(file, content)
  const fromFile = Object.entries(written).map(([name, text]) => given(name, text, file, join(file, '..')))
  const real = Object.entries(source.env).map(([name, text]) => given(name, text, 'environment', caller))
  return new Map([...fromFile, ...real].flat())
}

function given(name: string, text: string | undefined, from: string, folder: string): [string, Given][] {
  return text === undefined || text.trim() === '' ? [] : [[name, { text: text.trim(), from, folder }]]
}

function readText(file: string, { required }: { required: boolean }): string | undefined {
  try {
    return decodeText(readFileSync(file))
  } catch (cause) {
    if (isSystemError(cause, 'ENOENT') && !required) return undefined
    const problem = `The settings file ${file} cannot be read: ${String(cause)}. Fix or remove it.`
    throw new SettingsError([problem], { cause })
  }
}

/** The merged environment as plain text, for other readers such as Temporal's `loadClientConnectConfig`. */
export function toPlain(environment: ReadonlyMap<string, Given>): Record<string, string> {
  return Object.fromEntries([...environment].map(([name, { text }]) => [name, text]))
}

/** Where a variable was set, for people. */
export const placeOf = ({ from }: Given): string => (from === 'environment' ? 'the environment' : from)

/** A setting in a file, with the line that it begins on. */
interface Assignment {
  name: string
  text: string
  line: number
}

/**
 * Decodes what editors save: UTF-8, or UTF-16 with its mark. The mark itself goes. Bytes that are not text become
 * U+FFFD.
 */
export function decodeText(bytes: Uint8Array): string {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes)
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes)
  return new TextDecoder().decode(bytes)
}

/** Shows nothing, but makes a name or a value another one. */
export const invisible = /[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\ufeff]/

/** As in U+200B. */
export const codePointOf = (letter: string): string =>
  `U+${letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`

const assignment = /^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=(?!=)(.*)$/
/**
 * Another setting inside a value, whose line break or closing quote is missing: one of ours in any place, because
 * `echo NAME=value >> .env` joins it to a last line that has no line break.
 */
const another =
  /(?:^|\s)[A-Z][A-Z0-9]*_[A-Z0-9_]*[ \t]*=|(?:BILLING|CONNECTOR|WAREHOUSE|NOTIFY)_[A-Z_]+[ \t]*=/

/**
 * Reads the lines of a `.env` file: blank, a comment, or `NAME=value`, with `export` before it or not. A value in
 * quotes may have several lines. Everything else is a problem: a line that is skipped could be the one that asks for
 * test mode.
 * @throws {SettingsError} with every problem; none repeats a value
 */
export function parseEnvFile(file: string, content: string): Record<string, string> {
  if (content.includes('\0')) throw new SettingsError([`The file ${file} is not text; save it as UTF-8.`])
  const lines = content.split(/\r\n|\n|\r/)
  const values: Assignment[] = []
  const problems: string[] = []
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index]!
    const visible = line.replaceAll(new RegExp(invisible, 'g'), '').trim()
    if (visible === '' || visible.startsWith('#')) continue
    const number = index + 1
    const [, name, written] = assignment.exec(line) ?? []
    if (name === undefined || written === undefined) {
      problems.push(
        `Line ${number} of ${file} is neither blank, a comment nor NAME=value${oddLetter(line)}; correct it.`,
      )
      continue
    }
    const read = readValue([written.trimStart(), ...lines.slice(number)])
    if (typeof read === 'string') problems.push(`The value of ${name} in line ${number} of ${file} ${read}.`)
    else {
      const earlier = values.find((value) => value.name === name && value.text !== '')
      if (earlier !== undefined && earlier.text !== read.text)
        problems.push(
          `Lines ${earlier.line} and ${number} of ${file} set ${name} to different values; remove one.`,
        )
      values.push({ name, text: read.text, line: number })
      index += read.more
    }
  }
  if (problems.length > 0) throw new SettingsError(problems)
  return Object.fromEntries(values.map(({ name, text }) => [name, text]))
}

/** Names the first letter that does not belong before the value, because it may look like one that does. */
function oddLetter(line: string): string {
  const odd = /[^\t\x20-\x7e]/u.exec(line.split('=')[0]!)?.[0]
  if (odd === undefined) return ''
  return odd === '\ufffd' ? ' in UTF-8' : ` (it has the letter ${codePointOf(odd)})`
}

/** The value that the first line begins, and the number of further lines that it takes; or what is wrong with it. */
function readValue([first = '', ...rest]: readonly string[]): { text: string; more: number } | string {
  const quote = /^["'`]/.exec(first)?.[0]
  const read = quote === undefined ? readPlain(first) : readQuoted(quote, first, rest)
  return typeof read !== 'string' && read.text.includes('\ufffd')
    ? 'has bytes that are not UTF-8; save the file as UTF-8'
    : read
}

function readQuoted(quote: string, first: string, rest: readonly string[]) {
  const content = [first.slice(1), ...rest].join('\n')
  const end = content.indexOf(quote)
  const text = content.slice(0, end)
  const [, ...further] = text.split('\n')
  if (end === -1 || further.some((line) => another.test(line)))
    return `begins with ${quote}, and the closing ${quote} is missing; add it`
  const [after = ''] = content.slice(end + 1).split('\n')
  if (!/^\s*(#.*)?$/.test(after))
    return `has text after its closing ${quote}; use one pair of quotes around it all`
  return { text: quote === '"' ? text.replaceAll('\\n', '\n') : text, more: further.length }
}

function readPlain(first: string) {
  const text = first.replace(/(^|\s)#.*$/, '').trim()
  if (text.includes('#')) return 'has a #; put the value into quotes, or a space before a comment'
  const [, ending = ''] = /(["'`])$/.exec(text) ?? []
  if (ending !== '' && text.indexOf(ending) === text.length - 1)
    return `ends with ${ending}, and the opening one is missing; add it, or remove this one`
  if (another.test(text))
    return 'is followed by another NAME=; put that on a line of its own, or the value into quotes'
  return { text, more: 0 }
}
