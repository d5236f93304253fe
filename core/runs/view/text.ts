import { formatTable } from './format.ts'
import { piecesOf, type Sentence, type Table, type View } from './view.ts'

/** Commands that take no `--local`. */
const needsServer = /^(?:npx )?\S+ (?:run (?!publish )|state )/

/**
 * Renders a view for the terminal. The page has the rest. With `local`, next commands that can start a server of their
 * own, as the command that prints them did.
 */
export function toText(view: View, { local = false } = {}): string {
  const {
    run,
    summary = view.verdict?.headline,
    problems = [],
    notices = [],
    next = [],
    counts = [],
    tables = [],
  } = view
  const { folder, page, unit = '' } = view
  const counted = counts.map(({ name, value }) => [name, value])
  const steps = next.flatMap(({ text, command }) =>
    command === undefined
      ? [`Next: ${text}`]
      : [`Next: ${text}:`, `  ${command}${local && !needsServer.test(command) ? ' --local' : ''}`],
  )
  const blocks = [
    summary === undefined ? '' : `${run}: ${summary}`,
    counted.length === 0 ? '' : formatTable({ head: ['', unit], rows: counted }),
    toTablesText(tables),
    [...problems, ...notices]
      .flatMap(({ text, details = [] }) => [toPlain(text), ...details.map((line) => `  ${line}`)])
      .join('\n'),
    steps.join('\n'),
    [
      ...(page === undefined ? [] : [`Report: ${page}`]),
      ...(folder === undefined ? [] : [`Folder: ${folder}`]),
    ].join('\n'),
  ]
  return blocks.filter(Boolean).join('\n\n')
}

export const toTablesText = (tables: readonly Table[]): string =>
  tables
    .filter(({ rows }) => rows.length > 0)
    .map((table) => `${table.title === '' ? '' : `${table.title}\n`}${formatTable(table)}`)
    .join('\n\n')

export const toPlain = (from: Sentence): string =>
  piecesOf(from)
    .map((piece) => (typeof piece === 'string' ? piece : 'strong' in piece ? piece.strong : piece.code))
    .join('')
