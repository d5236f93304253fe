import { cellText, formatCount, formatTime, numericColumns, toPrintableLine } from './format.ts'
import { piecesOf, type Sentence, type Table, type View } from './view.ts'

/** Renders a view as the Current Details of a run in the Temporal UI. */
export function toMarkdown(view: View): string {
  const {
    verdict,
    summary,
    status = [],
    problems = [],
    notices = [],
    next = [],
    counts = [],
    unit = '',
  } = view
  const { tables = [], folder, page, files = [], controls = [] } = view
  const counted = counts.map(({ name, value }) => [name, value] as const)
  const [first, ...others] = status
  return [
    // A run that was started in the UI has no summary.
    ...(view.title === '' ? [] : [`### ${escapeMarkdown(view.title)}`]),
    ...toIdentity(view),
    ...(verdict === undefined
      ? []
      : [`**${escapeMarkdown(verdict.word)}**: ${escapeMarkdown(verdict.meaning)}`]),
    ...(summary === undefined ? [] : [escapeMarkdown(summary)]),
    ...(first === undefined ? [] : [toInline(first)]),
    ...toList(others.map(toInline)),
    ...toList(
      [...problems, ...notices].flatMap(({ text, details = [] }) => [
        toInline(text),
        ...details.map((detail) => `  - ${escapeMarkdown(detail)}`),
      ]),
    ),
    ...toList(
      next.map(({ text, command }) =>
        toInline(command === undefined ? text : [`${text}: `, { code: command }]),
      ),
    ),
    ...(counted.length === 0 ? [] : [toTable({ title: '', head: ['', unit], rows: counted })]),
    ...tables.filter(({ rows }) => rows.length > 0).map(toTable),
    ...(page === undefined ? [] : [`Report: ${toInline([{ code: page }])}`]),
    ...(folder === undefined ? [] : [`Folder: ${toInline([{ code: folder }])}`]),
    ...(folder === undefined || files.length === 0
      ? []
      : toList(files.map(({ name, about }) => toInline([{ code: name }, ` ${about}`])))),
    ...(controls.length === 0 ? [] : ['**Buttons**', ...toList(controls.map(toInline))]),
  ].join('\n\n')
}

function toIdentity({ identity }: View): string[] {
  if (identity === undefined) return []
  const { mode, workspace, baseUrl } = identity
  // On a line of its own: the UI treats text after an address as part of it.
  const at = baseUrl === undefined ? '' : ` at ${baseUrl}`
  return [`**${mode.toUpperCase()}** ${escapeMarkdown(workspace)}${at}`]
}

/** Renders one list; nested lines arrive indented. */
const toList = (lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [lines.map((line) => (line.startsWith('  - ') ? line : `- ${line}`)).join('\n')]

/** The UI shows details beside the summary, in about this many characters, and cuts off what is wider. */
const widest = 50
const longestCell = 30

/**
 * A table that fits: what all its rows share, or what is long, is listed below it; then it may be turned over. Where
 * neither fits, as with large totals, each row becomes a line.
 */
function toTable({ title, head, rows }: Table): string {
  const cells = rows.map((row) =>
    row.map((cell) => (typeof cell === 'number' ? formatCount(cell) : cellText(cell, formatTime).trim())),
  )
  const isWide = (lines: readonly (readonly string[])[]) => widthOf(lines) > widest
  const below: string[] = []
  const columns = head.flatMap((name, at) => {
    const column = cells.map((row) => row[at] ?? '')
    const isSame = column.length > 1 && new Set(column).size === 1
    const isLong = column.some((text) => text.length > longestCell)
    if (at === 0 || !isWide([head, ...cells]) || !(isLong || (isSame && !/^[\d.,]*$/.test(column[0] ?? ''))))
      return [[name, ...column]]
    below.push(
      ...(isSame
        ? [`${name === '' ? '' : `${name}: `}${column[0]}`]
        : column.flatMap((text, row) => (text === '' ? [] : [labelOf(head[0], cells[row]?.[0]) + text]))),
    )
    return []
  })
  const lines = turn(columns)
  const [names = [], ...fitting] = isWide(lines) && widthOf(columns) < widthOf(lines) ? columns : lines
  const heading = title === '' ? [] : [`**${escapeMarkdown(title)}**`]
  if (isWide([names, ...fitting]))
    return [
      ...heading,
      ...toList([...lines.slice(1).map(toLine(lines[0])), ...below].map(escapeMarkdown)),
    ].join('\n\n')
  const isRight = numericColumns({ head: names, rows: fitting })
  // The UI renders columns without a gap.
  const line = (row: readonly string[]) =>
    `|${row.map((cell, at) => ` ${at === 0 ? cell : `\u00a0\u00a0${cell}`} `.replace(/^ +$/, ' ')).join('|')}|`
  const toCell = (cell: string, at: number) =>
    at === 0 ? escapeInline(cell) : keepTogether(escapeInline(cell))
  return [
    ...heading,
    [
      line(names.map((name) => escapeInline(name).replaceAll('.', `.${mayBreak}`))),
      `| ${names.map((_, at) => (isRight[at] ? '---:' : ':---')).join(' | ')} |`,
      ...fitting.map((row) => line(row.map(toCell))),
    ].join('\n'),
    ...toList(below.map(escapeMarkdown)),
  ].join('\n\n')
}

const mayBreak = '\u200b'

/** Names of columns and rows may break at a space, those of columns also behind a dot. */
const widthOf = ([head = [], ...rows]: readonly (readonly string[])[]): number =>
  turn([head, ...rows]).reduce((width, [name = '', ...column], at) => {
    const parts = [
      ...name.split(/ |(?<=\.)/),
      ...(at === 0 ? column.flatMap((cell) => cell.split(' ')) : column),
    ]
    return width + 2 + Math.max(...parts.map((text) => text.length))
  }, 0)

/** A row as a line: `file (30 rows): changes 30, amount 1.500,00`. */
const toLine =
  ([, ...names]: readonly string[] = []) =>
  ([first = '', ...row]: readonly string[]): string => {
    const told = row.flatMap((text, at) => (text === '' ? [] : [`${names[at]} ${keepTogether(text)}`.trim()]))
    return `${first === '' ? '' : `${first}: `}${told.join(', ')}`
  }

/** What a line below the table is about: `row 17: `. */
const labelOf = (name = '', cell = ''): string =>
  cell === '' ? '' : /^\d/.test(cell) ? `${name} ${cell}: ` : `${cell}: `

const turn = (lines: readonly (readonly string[])[]): string[][] =>
  (lines[0] ?? []).map((_, at) => lines.map((line) => line[at] ?? ''))

const keepTogether = (cell: string): string =>
  cell.length > longestCell ? cell : cell.replaceAll(' ', '\u00a0')

/** Renders a sentence on one line. Backticks would end inline code. */
function toInline(from: Sentence): string {
  return piecesOf(from)
    .map((piece, at) => {
      if (typeof piece === 'string') return at === 0 ? escapeStart(escapeInline(piece)) : escapeInline(piece)
      if ('strong' in piece) return `**${escapeInline(piece.strong)}**`
      return `\`${toPrintableLine(piece.code).replaceAll('`', "'")}\``
    })
    .join('')
    .trim()
}

/**
 * Escapes untrusted text for Markdown, so that it is shown literally: a service's message, or the name of a
 * file, run or schedule. It cannot form a link, image, table cell, heading or new line. All text in Current
 * Details or a summary that is not written in this project must pass through here.
 */
export const escapeMarkdown = (text: string): string => escapeStart(escapeInline(text.trim()))

const escapeInline = (text: string): string =>
  toPrintableLine(text.replaceAll(/\s+/g, ' '))
    .replaceAll(/[\\`*[\]<>|~#&!]/g, String.raw`\$&`)
    .replaceAll(/_/g, (_, at: number, line: string) => (isInWord(line, at) ? '_' : String.raw`\_`))
    // Renderers also link bare addresses.
    .replaceAll(/:(?=\/\/)/g, String.raw`\:`)
    .replaceAll(/\bwww\./gi, String.raw`www\.`)

/** Whether an underscore stands between two letters or digits, where it starts no emphasis. */
function isInWord(line: string, at: number): boolean {
  // Two units hold any character.
  const before = Array.from(line.slice(Math.max(0, at - 2), at)).at(-1) ?? ''
  const after = Array.from(line.slice(at + 1, at + 3))[0] ?? ''
  return [before, after].every((one) => /[a-z\d]/i.test(one) || letterOrDigit.test(one))
}

// Compiling it takes milliseconds in each new workflow context, so only text beyond ASCII gets here.
const letterOrDigit = /[\p{L}\p{N}]/u

/** Escapes the start of a line: no list, heading or rule. */
const escapeStart = (text: string): string =>
  text.replace(/^(\s*)([-+=])/, String.raw`$1\$2`).replace(/^(\s*\d+)([.)])/, String.raw`$1\$2`)
