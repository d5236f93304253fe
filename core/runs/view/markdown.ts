import { type Cell, cellText, formatCount, formatTime, numericColumns } from './format.ts'
import { toPrintableLine } from './printable.ts'
import { piecesOf, type Sentence } from './sentence.ts'
import type { Table, View } from './view.ts'

/** A view as the Current Details of a run in the Temporal UI. */
export function toMarkdown(view: View): string {
  const { verdict, summary, status = [], problems = [], next = [], counts = [], unit = '' } = view
  const { tables = [], folder, page, files = [], controls = [] } = view
  const counted = counts.map(({ name, value }) => [name, value] as const)
  return [
    ...toIdentity(view),
    ...(verdict === undefined
      ? []
      : [`**${escapeMarkdown(verdict.word)}**: ${escapeMarkdown(verdict.meaning)}`]),
    ...(summary === undefined ? [] : [escapeMarkdown(summary)]),
    ...status.map(toInline),
    ...toList(
      problems.flatMap(({ text, details = [] }) => [
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
    ...controls.map(toInline),
  ].join('\n\n')
}

function toIdentity({ identity }: View): string[] {
  if (identity === undefined) return []
  const { mode, workspace, baseUrl } = identity
  // Alone on its line: the UI takes what follows an address for a part of it.
  const at = baseUrl === undefined ? '' : ` at ${baseUrl}`
  return [`**${mode.toUpperCase()}** ${escapeMarkdown(workspace)}${at}`]
}

/** One list: nested lines come indented. */
const toList = (lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [lines.map((line) => (line.startsWith('  - ') ? line : `- ${line}`)).join('\n')]

function toTable({ title, head, rows }: Table): string {
  const isRight = numericColumns({ head, rows })
  // The UI sets columns without a gap.
  const line = (cells: readonly string[]) =>
    `|${cells.map((cell, at) => ` ${at === 0 ? cell : `\u00a0\u00a0${cell}`} `.replace(/^ +$/, ' ')).join('|')}|`
  const toCell = (cell: Cell) =>
    typeof cell === 'number' ? formatCount(cell) : escapeInline(cellText(cell, formatTime).trim())
  const table = [
    line(head.map(escapeMarkdown)),
    `| ${head.map((_, at) => (isRight[at] ? '---:' : '---')).join(' | ')} |`,
    ...rows.map((row) => line(row.map(toCell))),
  ].join('\n')
  return title === '' ? table : `**${escapeMarkdown(title)}**\n\n${table}`
}

/** A sentence on one line. Backticks would end a piece of code. */
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
 * Text of others as Markdown that shows it and no more: the message of a service, the name of a file, run or schedule.
 * It makes no link, image, table cell, heading or line of its own. Everything that goes into Current Details or a
 * summary, and isn't written in this project, passes here.
 */
export const escapeMarkdown = (text: string): string => escapeStart(escapeInline(text.trim()))

const escapeInline = (text: string): string =>
  toPrintableLine(text.replaceAll(/\s+/g, ' '))
    .replaceAll(/[\\`*[\]<>|~#&!]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, String.raw`\$&`)
    // Renderers make links of bare addresses too.
    .replaceAll(/:(?=\/\/)/g, String.raw`\:`)
    .replaceAll(/\bwww\./gi, String.raw`www\.`)

/** Of a line: no list, heading or rule. */
const escapeStart = (text: string): string =>
  text.replace(/^(\s*)([-+=])/, String.raw`$1\$2`).replace(/^(\s*\d+)([.)])/, String.raw`$1\$2`)
