import { checkFile, type FileCheck } from '../../core/imports/check.ts'
import { fileOf } from '../../core/imports/run-files.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { type ImportOrder, type UploadedImport, toRefusal } from './upload-import.ts'
import { toSentence } from '../../core/imports/problems.ts'
import { sheetsNotRead } from '../../core/imports/view.ts'
import { RefusedError } from '../terminal/failures.ts'
import { toPrintableLine } from '../../core/runs/view/printable.ts'
import { columnNames, toReceiptTables } from '../../core/imports/totals.ts'
import { toTablesText } from '../../core/runs/view/text.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** The most problems to show on a screen; `check.json` in the run's folder lists up to a thousand. */
const mostShown = 20

/**
 * Checks the whole file, as copied for the run, before any server is started. Shows its control totals.
 *
 * @throws if the file cannot be sent
 */
export async function previewImport({
  settings: { dataDir },
  order: { input },
  uploaded,
  terminal,
}: {
  settings: Settings
  order: ImportOrder
  uploaded: UploadedImport
  terminal: Terminal
}): Promise<FileCheck> {
  const file = await fileOf({ plan: { ...input, ...uploaded.prepared }, dataDir })
  // First, because what is wrong with this sheet may be that the data is in another one.
  for (const line of sheetsNotRead(file.mapping?.sheets)) terminal.note(toPrintableLine(line))
  const { expectRows, expectTotals, onInvalid } = input
  const check = await checkFile({ ...file, expectRows, expectTotals }).catch((error: unknown) => {
    throw toRefusal(error)
  })
  for (const line of describe(check)) terminal.note(line)
  const { problems } = check
  if (check.problemCount > 0 && (check.stopped || onInvalid !== 'skip')) {
    const many =
      check.problemCount === 1 ? '1 problem' : `${check.problemCount.toLocaleString('en')} problems`
    throw new RefusedError(`${check.file} has ${many}, so nothing was sent.`, {
      hint: check.stopped
        ? 'Fix the file, or set how it is read.'
        : 'Fix the rows, or skip them with --on-invalid skip.',
      details: {
        problems: problems.map((problem) => ({ ...problem, sentence: toSentence(problem) })),
        problemCount: check.problemCount,
        totals: check.totals,
      },
    })
  }
  return check
}

function describeGaps({ empty, nulls }: { empty: number; nulls: number }): string {
  const cells = empty === 0 ? [] : [`${empty.toLocaleString('en')} empty ${empty === 1 ? 'cell' : 'cells'}`]
  return [...cells, ...(nulls === 0 ? [] : [`${nulls.toLocaleString('en')} with \\N (null)`])].join(', ')
}

function describe(check: FileCheck): string[] {
  const { totals, problems, problemCount, columns, ignored } = check
  const left = ignored.map(({ column, reason }) => `${column} is ignored: ${reason}`)
  const cells = columns.flatMap(({ column, empty, null: nulls }) =>
    empty + nulls === 0 ? [] : [`${column}: ${describeGaps({ empty, nulls })}`],
  )
  const shown = problems.slice(0, mostShown).map(toSentence)
  const more = problemCount > shown.length ? [`... and ${problemCount - shown.length} more problems`] : []
  return [
    toTablesText(toReceiptTables({ file: totals, columns: columnNames(columns) })),
    ...[...left, ...cells, ...shown, ...more].map(toPrintableLine),
  ]
}
