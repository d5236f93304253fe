import { join } from 'node:path'
import type { Billing } from '../../billing/client.ts'
import type { ListPage } from '../../billing/reply.ts'
import { newestCreated, newestPage } from '../../changes/audit/audit-retentions.ts'
import { refuseOlderThanTold } from '../../changes/watched-ledger.ts'
import { countOpen, markCanary, openCanary } from '../../changes/send/canary.ts'
import type { ChangeToStage } from '../../changes/stage-changes.ts'
import {
  type ChangesFile,
  createChangesFile,
  type Decided,
  stageKeptChanges,
} from '../../changes/staged-changes.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import { replaceFile } from '../../storage/durable.ts'
import { checkFile, closedBy, type FileCheck } from '../check.ts'
import { importKinds } from '../kinds.ts'
import { RowsTaken } from '../errors.ts'
import { type ImportPlan, canarySize, runFiles } from '../input.ts'
import { refuseDamaged } from '../stored-input.ts'
import { fileOf, readRunNotes, type Staged, type StagedNote } from '../run-files.ts'
import { type Existing, findExisting } from './existing-in-service.ts'
import { type LedgerMatches, matchLedger } from './match-ledger.ts'
import { refuseInvalid, refuseMissing, refuseTaken, refuseUnseen } from './refuse.ts'
import { keepActiveRuns, type TakeOverDeps, takeOverRows } from './take-over.ts'

interface StageOptions {
  deps: TakeOverDeps & {
    dataDir: string
    /** How long a record may stay invisible after its `created`. */
    readLagMs: number
  }
  plan: ImportPlan
  billing: Billing
  signal: AbortSignal
}

/**
 * Checks a run's whole file and stages its changes, or rejects all of them. A run that was already staged
 * stays unchanged. A dry run stages nothing.
 *
 * @throws {InvalidFile}
 * @throws {RowsTaken} another run has some of its rows, or the service does
 */
export async function stageRun(
  options: StageOptions & {
    onPhase: (phase: string) => void
  },
): Promise<Staged> {
  return await stage(options)
}

async function stage(options: Parameters<typeof stageRun>[0]): Promise<Staged> {
  const { deps, plan, billing, signal, onPhase } = options
  const { run } = plan
  const { dataDir } = deps
  const { ledger } = deps.state
  const folder = join(dataDir, plan.folder)
  onPhase('checking the file')
  const { staged } = await readRunNotes(folder)
  if (staged !== undefined && !plan.dryRun) {
    await refuseOlderThanTold({ ledger, run, told: { rows: staged.staged, claims: 0 } })
    return await withOpen({ ledger, plan, staged })
  }
  await refuseDamaged({ dataDir, ...plan })
  const file = await fileOf({ plan, dataDir })
  const { expectRows, expectTotals, sendAgain } = plan
  const kind = importKinds[plan.kind].change.name
  await using changes = await createChangesFile(folder, { ...plan.identity, run, kind })
  const check = await checkFile({ ...file, expectRows, expectTotals, sendAgain, changes })
  await replaceFile(join(folder, runFiles.check), JSON.stringify(check, null, 2))
  if (plan.dryRun && check.stopped) return toStaged({ check })
  refuseInvalid(check, plan.dryRun ? 'skip' : plan.onInvalid)
  onPhase('looking for rows of earlier runs')
  const matches = await matchLedger({ ledger, plan, check, changes })
  refuseMissing({ plan, matches, check })
  await keepActiveRuns({ ...deps, matches })
  onPhase('looking for rows that the service already has')
  // Before the search: of what is created meanwhile, the audit finds what the search does not.
  const newest = plan.listed ? await newestPage({ billing, signal }) : undefined
  const newestBefore = newest && newestCreated(newest)
  const existing = await lookForExisting({ ...options, matches, newest })
  refuseTaken({ plan, matches, existing })
  refuseUnseen({ plan, existing })
  if (plan.dryRun) return toStaged({ check, matches, existing })
  onPhase('staging')
  await takeOverRows({ ...deps, plan, matches })
  const rows = await stageAll({ ...options, check, matches, existing, changes })
  const note = toStaged({ check, matches, existing, newestBefore, staged: rows })
  await replaceFile(join(folder, runFiles.staged), JSON.stringify(note, null, 2))
  return await withOpen({ ledger, plan, staged: note })
}

async function withOpen({
  ledger,
  plan,
  staged,
}: {
  ledger: Ledger
  plan: ImportPlan
  staged: StagedNote
}): Promise<Staged> {
  const { run } = plan
  const kind = importKinds[plan.kind].change
  await markCanary({ ledger, run, kind, ...canarySize(plan) })
  return { ...staged, open: await countOpen({ ledger, run }), canary: await openCanary({ ledger, run }) }
}

async function lookForExisting(
  options: StageOptions & { matches: LedgerMatches; newest: ListPage | undefined },
): Promise<Existing> {
  const { deps, plan, billing, matches, newest, signal } = options
  if (newest === undefined) return { ids: new Map(), reasons: [] }
  const { readLagMs } = deps
  const testMode = plan.identity.mode === 'test'
  const { lookups, known } = matches
  const found = await findExisting({ billing, lookups, newest, testMode, readLagMs, signal })
  const ids = new Map<string, string[]>()
  for (const [key, all] of found.ids) {
    const foreign = all.filter((id) => !known.has(id))
    if (foreign.length > 0) ids.set(key, foreign)
  }
  return { ...found, ids }
}

interface Choices {
  plan: ImportPlan
  check: FileCheck
  matches: LedgerMatches
  existing: Existing
  changes: ChangesFile
}

/** Keeps the rows in the run's folder, then stages them. Returns their number. */
async function stageAll(options: StageOptions & Choices): Promise<number> {
  const { deps, plan, changes, signal } = options
  const folder = join(deps.dataDir, plan.folder)
  const staged = await changes.keep(await decide(options))
  await stageKeptChanges({
    ledger: deps.state.ledger,
    folder,
    signal,
    onHeld: async ([first]) => {
      // Another run took the row after `matchLedger`.
      throw new RowsTaken(`The run ${first?.by.run} has just taken row ${first?.row}. Let it end first.`)
    },
  })
  return staged
}

/** What only the whole file, the ledger and the service decide on its rows. */
async function decide({ plan, check, matches, existing, changes }: Choices): Promise<Map<number, Decided>> {
  const decided = new Map<number, Decided>()
  for await (const batch of changes.batches())
    for (const change of batch) {
      const { row, key } = change
      const ids = existing.ids.get(key)
      const closed = closedBy(check, change) ?? skippedReason({ row, matches, ids, plan })
      if (closed === change.closed && ids === undefined) continue
      decided.set(row, { ...(closed && { closed }), ...(ids && { before: JSON.stringify({ ids }) }) })
    }
  return decided
}

function skippedReason(options: {
  row: number
  matches: LedgerMatches
  ids: readonly string[] | undefined
  plan: ImportPlan
}): ChangeToStage['closed'] {
  const { row, matches, ids, plan } = options
  const earlier = matches.doneEarlier.get(row)
  if (earlier !== undefined) {
    const { run, answerId, differences } = earlier
    const by = `the run ${run} did it`
    return differences.length === 0
      ? { state: 'dropped', outcome: 'doneEarlier', error: by, answerId }
      : { state: 'dropped', outcome: 'doneOtherwise', error: `${by}: ${differences.join('; ')}`, answerId }
  }
  if (ids !== undefined && plan.existing === 'skip')
    return {
      state: 'dropped',
      outcome: 'existed',
      error: `it already exists in the service, as ${ids.join(', ')}`,
    }
  return undefined
}

function toStaged({
  check,
  matches,
  existing,
  newestBefore,
  staged = 0,
}: {
  check: FileCheck
  matches?: LedgerMatches
  existing?: Existing
  newestBefore?: string | undefined
  staged?: number
}): Staged {
  return {
    rows: check.totals.rows,
    changes: check.totals.changes,
    staged,
    invalid: check.invalid,
    problems: check.problemCount,
    doneEarlier: matches?.doneEarlier.size ?? 0,
    doubtfulEarlier: [...(matches?.doneEarlier.values() ?? [])].filter(({ isDoubtful }) => isDoubtful).length,
    existed: existing?.ids.size ?? 0,
    totals: check.totals,
    existingReasons: existing?.reasons ?? [],
    ...(newestBefore !== undefined && { newestBefore }),
    open: 0,
    canary: [],
  }
}
