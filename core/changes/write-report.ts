import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { changeRunFiles } from '../runs/run-files.ts'
import { toReportPage } from '../runs/view/html.ts'
import type { View } from '../runs/view/view.ts'

/**
 * Writes report.json, report.html and the sheets of a run into its folder. May be called at any moment, also beside a
 * worker: each file is replaced whole, the report last.
 */
export async function writeReport(options: {
  folder: string
  /** The names of the sheets. */
  sheets: readonly string[]
  /** Writes the sheets into a folder and returns the report, so that one pass over the rows does for both. */
  write: (folder: string) => Promise<{ report: object; view: View }>
}): Promise<void> {
  const { folder, sheets, write } = options
  const fresh = await mkdtemp(join(folder, '.report-'))
  try {
    const { report, view } = await write(fresh)
    await writeFile(join(fresh, changeRunFiles.page), toReportPage(view))
    await writeFile(join(fresh, changeRunFiles.report), `${JSON.stringify(report, null, 2)}\n`)
    for (const name of [...sheets, changeRunFiles.page, changeRunFiles.report])
      await rename(join(fresh, name), join(folder, name))
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}
