import { runOfUse } from '../../../core/runs/name.ts'
import { NoStateError, StateUnreadableError } from '../../../core/state/errors.ts'
import { openState } from '../../../core/state/open.ts'
import { openFiles } from '../../../worker/files.ts'
import type { Settings } from '../../../worker/settings/settings.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import type { EndedRun, Records, Judge } from './ended-run.ts'
import { isExported } from './export.ts'
import { isImported } from './import.ts'
import { isRecovered } from './recovery.ts'

const judges: Readonly<Record<string, Judge>> = {
  exportData: isExported,
  importFile: isImported,
  recoverSubscriptions: isRecovered,
}

/**
 * Tells whether what needed a person in an ended run has been done since, by any run. Temporal cannot change the search
 * attributes of such a run, so it is worked out from the ledger, the publication log and the reports of this data folder.
 * What they do not show counts as not done.
 */
export async function openDoneSince({
  settings,
  terminal,
}: {
  settings: Settings
  terminal: Pick<Terminal, 'note'>
}): Promise<{ isDoneSince: (run: EndedRun) => Promise<boolean> } & AsyncDisposable> {
  const tell = (error: unknown) => {
    terminal.note(`Runs may be listed that need no person any more: ${(error as Error).message}`)
    return undefined
  }
  const records = await openRecords(settings).catch((error: unknown) =>
    // On a machine without a data folder, there is nothing to know.
    error instanceof StateUnreadableError || error instanceof NoStateError ? undefined : tell(error),
  )
  let hasFailed = false
  return {
    async isDoneSince(run) {
      if (records === undefined || hasFailed) return false
      try {
        return await isDoneInAllUses(records, run)
      } catch (error) {
        hasFailed = true
        tell(error)
        return false
      }
    },
    [Symbol.asyncDispose]: async () => records?.state.close(),
  }
}

async function openRecords(settings: Settings): Promise<Records> {
  const { dataDir } = settings
  const files = openFiles(settings)
  return { dataDir, files, state: await openState({ ...settings.state, readOnly: true }) }
}

/** Several runs may have had the workflow id, and it is not known here which of them this one is. */
async function isDoneInAllUses(records: Records, ended: EndedRun): Promise<boolean> {
  const judge = judges[ended.type]
  if (judge === undefined) return false
  for (let use = 1; ; use += 1) {
    const isDoneSince = await judge(records, { ...ended, run: runOfUse(ended.run, use) })
    if (isDoneSince !== true) return isDoneSince === undefined && use > 1
  }
}
