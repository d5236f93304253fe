import { join } from 'node:path'
import { RunFilesLostError } from '../changes/errors.ts'
import { closeGap, type GapOptions, markClaimed } from '../changes/restored-ledger.ts'
import { takeOver } from '../changes/send/release-rows.ts'
import { toFileName } from '../storage/file-name.ts'
import { importKinds } from './kinds.ts'
import { type ImportPlan, runFiles } from './input.ts'
import type { StagedNote } from './run-files.ts'
import { takeLease } from '../runs/lease.ts'
import type { StepFolder } from '../runs/step-folder.ts'
import type { LeaseOwner } from '../state/leases.ts'
import type { State } from '../state/open.ts'
import { RowsTaken } from './errors.ts'

/** Dependencies for comparing an import's ledger with its files. */
export interface ImportGapDeps {
  state: Pick<State, 'ledger' | 'leases'>
  dataDir: string
  /** Whether several workers share the files: see `GapOptions`. */
  isCopy: boolean
  /** Fetches what the data folder may lack of another run. */
  fetchRun: StepFolder['fetchRun']
  owner: LeaseOwner
  isClosed: (owner: LeaseOwner) => Promise<boolean>
}

export const leaseOf = (run: string) => `import ${run}`

/**
 * What to compare an import's ledger with. A row that has to be staged again but that an ended run holds
 * unsent is taken over, as in the first staging.
 * @throws {RunFilesLostError} the record of what was staged is missing
 * @throws {RowsTaken} from `onHeld`, if another run has sent a row
 */
export function gapOf({
  deps,
  plan,
  staged,
}: {
  deps: ImportGapDeps
  plan: ImportPlan
  staged: StagedNote | undefined
}): Pick<GapOptions, 'staged' | 'isCopy' | 'onHeld'> {
  const { owner, isClosed, isCopy } = deps
  const { ledger, leases } = deps.state
  const folder = join(deps.dataDir, plan.folder)
  if (staged === undefined) throw new RunFilesLostError({ path: join(folder, runFiles.staged) })
  return {
    staged: staged.staged,
    isCopy,
    onHeld: async (held) => {
      for (const [run, rows] of Map.groupBy(held, ({ by }) => by.run)) {
        await learnClaims({ ...deps, run })
        for (const { row, by } of rows)
          if ((await ledger.byId(by))?.state !== 'staged')
            throw new RowsTaken(`Row ${row} is in the run ${run} by now. Let that run end first.`)
        await takeLease({ leases, name: leaseOf(run), owner, isClosed })
        await takeOver({ ledger, rows: rows.map(({ by }) => by), by: plan.run })
        await leases.release({ name: leaseOf(run), owner })
      }
      return new Map()
    },
  }
}

/** Fixes the ledger of an import that was staged before; see `closeGap`. */
export async function closeImportGap(options: {
  deps: ImportGapDeps
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

/**
 * Records rows that another import has sent since the ledger's backup as no longer unsent. Returns their
 * number.
 */
export async function learnClaims(options: ImportGapDeps & { run: string }): Promise<number> {
  const { state, dataDir, isCopy, fetchRun, run } = options
  await fetchRun({ room: 'imports', run, only: (name) => name === runFiles.claims })
  const folder = join(dataDir, 'imports', toFileName(run))
  return await markClaimed({ ledger: state.ledger, run, folder, isCopy })
}
