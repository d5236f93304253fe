import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isSystemError } from '../../core/storage/system-errors.ts'

/** What is wrong or missing in the settings, or in a file that a person wrote, one sentence each. */
export class SettingsError extends Error {
  override name = 'SettingsError' as const
  readonly exitCode = 2
  readonly hint: string
  readonly problems: readonly string[]

  constructor(problems: readonly string[], options: ErrorOptions & { hint?: string } = {}) {
    const { hint = 'docs/configuration.md describes every variable.', ...cause } = options
    super(problems.join(' '), cause)
    this.problems = problems
    this.hint = hint
  }
}

/** A variable's text and where it was set. */
export interface SetVariable {
  text: string
  /** The environment, a default, or the path of a file. */
  from: 'environment' | 'default' | (string & {})
  /** The folder to which its relative paths refer. */
  folder: string
}

export interface EnvironmentSource {
  /** The real environment; overrides the file. */
  env: Readonly<Record<string, string | undefined>>
  /** The folder that the process runs in; its `.env` is read. */
  cwd: string
}

/**
 * All variables that are set, in the real environment or in the `.env` file. An empty variable counts as
 * unset, so it does not hide the file's. Paths in the real environment are relative to the caller's folder
 * (INIT_CWD under npm), those in the file to the file's own folder: the ledger must not move with the folder
 * a command is called from.
 * @throws {SettingsError} the file cannot be read, or has a line that is not a setting
 */
export function readEnvironment({ env, cwd }: EnvironmentSource): Map<string, SetVariable> {
  const file = join(cwd, '.env')
  const sources = [
    { values: readEnvFile(file), from: file, folder: cwd },
    { values: env, from: 'environment', folder: env['INIT_CWD'] || cwd },
  ]
  const all = sources.flatMap(({ values, from, folder }) =>
    Object.entries(values).map(([name, text = '']) => [name, { text: text.trim(), from, folder }] as const),
  )
  return new Map(all.filter(([, { text }]) => text !== ''))
}

function readEnvFile(file: string): Record<string, string> {
  try {
    return parseEnvFile(file, decodeText(readFileSync(file)))
  } catch (cause) {
    if (cause instanceof SettingsError) throw cause
    if (isSystemError(cause, 'ENOENT')) return {}
    const problem = `The settings file ${file} cannot be read: ${String(cause)}. Fix or remove it.`
    throw new SettingsError([problem], { cause })
  }
}

/** Where a variable was set, for people. */
export const placeOf = ({ from }: SetVariable): string => (from === 'environment' ? 'the environment' : from)

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

/** Names the first letter of a name that may look like another one. */
export function oddLetter(name: string): string {
  const odd = /[^\t\x20-\x7e]/u.exec(name)?.[0]
  if (odd === undefined) return ''
  return odd === '\ufffd' ? ' in UTF-8' : ` (it has the letter ${codePointOf(odd)})`
}

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
  const values = new Map<string, { text: string; line: number }>()
  const problems: string[] = []
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index]!
    const number = index + 1
    if (/^(#|$)/.test(line.replaceAll(new RegExp(invisible, 'g'), '').trim())) continue
    const [, name, written] = assignment.exec(line) ?? []
    if (name === undefined || written === undefined) {
      const odd = oddLetter(line.split('=')[0]!)
      problems.push(`Line ${number} of ${file} is neither blank, a comment nor NAME=value${odd}; correct it.`)
      continue
    }
    const value = readValue(written.trimStart(), lines.slice(number))
    if (typeof value === 'string') {
      problems.push(`The value of ${name} in line ${number} of ${file} ${value}.`)
      continue
    }
    const { text, more } = value
    const earlier = values.get(name)
    if (earlier !== undefined && earlier.text !== '' && earlier.text !== text)
      problems.push(
        `Lines ${earlier.line} and ${number} of ${file} set ${name} to different values; remove one.`,
      )
    values.set(name, { text, line: number })
    index += more
  }
  if (problems.length > 0) throw new SettingsError(problems)
  return Object.fromEntries([...values].map(([name, { text }]) => [name, text]))
}

const unbalanced =
  'has quotes that do not enclose all of it; put one pair around the whole value, or remove them'

/** The value that a line begins, and how many of the next lines it takes; or what is wrong with it. */
function readValue(first: string, next: readonly string[]): { text: string; more: number } | string {
  const quote = /^["'`]/.exec(first)?.[0]
  if (quote === undefined) {
    const text = first.replace(/(^|\s)#.*$/, '').trim()
    if (text.includes('#')) return 'has a #; put the value into quotes, or a space before a comment'
    if (another.test(text))
      return 'is followed by another NAME=; put that on a line of its own, or the value into quotes'
    const last = text.at(-1) ?? ''
    if (/["'`]/.test(last) && text.indexOf(last) === text.length - 1) return unbalanced
    return { text, more: 0 }
  }
  const content = [first.slice(1), ...next].join('\n')
  const end = content.indexOf(quote)
  const text = content.slice(0, end)
  const [, ...further] = text.split('\n')
  const [after = ''] = content.slice(end + 1).split('\n', 1)
  const isClosed = end !== -1 && !further.some((line) => another.test(line)) && /^\s*(#.*)?$/.test(after)
  if (!isClosed) return unbalanced
  return { text: quote === '"' ? text.replaceAll('\\n', '\n') : text, more: further.length }
}
