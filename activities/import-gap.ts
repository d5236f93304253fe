import { join } from 'node:path'
import { RunFilesLostError } from '../changes/errors.ts'
import { closeGap, type GapOptions, markClaimed } from '../changes/ledger-gap.ts'
import { takeOver } from '../changes/take-over.ts'
import { toFileName } from '../destinations/export-folder.ts'
import { importKinds } from '../imports/import-kind.ts'
import { type ImportPlan, runFiles } from '../imports/import-plan.ts'
import type { StagedNote } from '../imports/run-notes.ts'
import { claim, ownerOf } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import { RowsTaken } from './import-errors.ts'

export const claimOf = (run: string) => `import ${run}`

/**
 * What an import's ledger is held against. A row that has to be staged again while a run that has ended holds it, unsent,
 * is taken over as it was the first time.
 */
export function gapOf({
  deps,
  plan,
  staged,
}: {
  deps: ActivityDeps
  plan: ImportPlan
  staged: StagedNote | undefined
}): Pick<GapOptions, 'staged' | 'onHeld'> {
  const folder = join(deps.dataDir, plan.folder)
  if (staged === undefined) throw new RunFilesLostError({ path: join(folder, runFiles.staged) })
  return {
    staged: staged.staged,
    onHeld: async (held) => {
      for (const [run, rows] of Map.groupBy(held, ({ by }) => by.run)) {
        await learnClaims({ deps, run })
        const [other] = rows.filter(({ by }) => by.state !== 'staged')
        if (other !== undefined)
          throw new RowsTaken(`Row ${other.row} is in the run ${run} by now. Let that run end first.`)
        await claim({ deps, what: claimOf(run) })
        await takeOver({ ledger: deps.state.ledger, rows: rows.map(({ by }) => by), by: plan.run })
        await deps.state.claims.release({ what: claimOf(run), owner: ownerOf() })
      }
      return new Map()
    },
  }
}

/** Fixes the ledger of an import that was staged before; see `closeGap`. */
export async function closeImportGap(options: {
  deps: ActivityDeps
  plan: ImportPlan
  staged: StagedNote
  signal: AbortSignal
}): Promise<void> {
  const { deps, plan, signal } = options
  const { run, identity } = plan
  const { ledger } = deps.state
  const kind = importKinds[plan.kind].change
  const folder = join(deps.dataDir, plan.folder)
  await closeGap({ ledger, run, space: identity, kind, folder, signal, ...gapOf(options) })
}

/** What another import has sent since a backup of the ledger is no longer unsent. Returns the number of rows. */
export const learnClaims = ({ deps, run }: { deps: ActivityDeps; run: string }): Promise<number> =>
  markClaimed({ ledger: deps.state.ledger, run, folder: join(deps.dataDir, 'imports', toFileName(run)) })
