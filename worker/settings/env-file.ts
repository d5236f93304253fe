import { SettingsError } from './errors.ts'

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
