import { join } from 'node:path'
import type { Billing } from '../../billing/client.ts'
import { newestCreated } from '../../changes/audit/audit-retentions.ts'
import { createClaimJournal } from '../../changes/claim-journal.ts'
import { chooseCanary } from '../../changes/send/canary.ts'
import type { ChangeToStage } from '../../changes/stage-changes.ts'
import { keepStagedChanges, stageKeptChanges } from '../../changes/staged-changes.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import { replaceFile } from '../../storage/durable.ts'
import { checkFile, type FileCheck } from '../check.ts'
import { importKinds } from '../kinds.ts'
import { closeImportGap, type ImportGapDeps } from '../ledger-gap.ts'
import { refuseDamagedCopy } from '../own-copy.ts'
import { type ImportPlan, runFiles } from '../plan.ts'
import { refusing, RowsTaken } from '../refusals.ts'
import { fileOf, readRunNotes, type Staged, type StagedNote } from '../run-files.ts'
import { type Existing, findExisting } from './existing-in-service.ts'
import { draftsOf, type Stock, takeStock } from './match-ledger.ts'
import { refuseMissing, refuseTaken } from './refuse.ts'
import { keepWhatGoesOn, learnWhatWasSent, takeOverRows } from './take-over.ts'

interface StageOptions {
  deps: ImportGapDeps & {
    /** How long a record may stay invisible after its `created`. */
    readLagMs: number
    concurrency: number
  }
  plan: ImportPlan
  billing: Billing
  signal: AbortSignal
}

/**
 * Checks the whole file of a run and stages its changes, or says why nothing of it may be sent. A run that was staged
 * before is left as it is. In a dry run nothing is staged.
 *
 * @throws {InvalidFile}
 * @throws {RowsTaken} another run has rows of it, or the service does
 */
export async function stageRun(
  options: StageOptions & {
    onPhase: (phase: string) => void
    /** Rows were staged now, not by an earlier attempt. */
    onStaged: () => void
  },
): Promise<Staged> {
  return await stage(options).catch((error: unknown) => {
    throw refusing(error)
  })
}

async function stage(options: Parameters<typeof stageRun>[0]): Promise<Staged> {
  const { deps, plan, billing, signal, onPhase } = options
  const { dataDir } = deps
  const { ledger } = deps.state
  const folder = join(dataDir, plan.folder)
  onPhase('checking the file')
  const { staged } = await readRunNotes(folder)
  if (staged !== undefined && !plan.dryRun) {
    await closeImportGap({ deps, plan, staged, signal })
    return await withOpen({ ledger, plan, staged })
  }
  await refuseDamagedCopy({ plan, dataDir })
  const file = await fileOf({ plan, dataDir })
  const check = await checkFile({ ...file, expect: plan.expect })
  await replaceFile(join(folder, runFiles.check), JSON.stringify(check, null, 2))
  if (plan.dryRun && check.stopped) return toStaged({ check })
  const onInvalid = plan.dryRun ? 'skip' : plan.onInvalid
  const drafts = () => draftsOf(plan, { ...file, check, onInvalid })
  onPhase('looking for what was done before')
  let stock = await takeStock({ ledger, plan, drafts: drafts() })
  if (await learnWhatWasSent({ ...deps, stock })) stock = await takeStock({ ledger, plan, drafts: drafts() })
  refuseMissing({ plan, stock, check })
  await keepWhatGoesOn({ ...deps, stock })
  onPhase('looking for what the service has already')
  const existing = await lookForExisting({ ...options, stock })
  refuseTaken({ plan, stock, existing })
  if (plan.dryRun) return toStaged({ check, stock, existing })
  onPhase('staging')
  const newestBefore = plan.kind === 'retentions' ? await newestCreated({ billing, signal }) : undefined
  await takeOverRows({ ...deps, plan, stock })
  const rows = await stageAll({ ...options, stock, existing, drafts: drafts() })
  const note = toStaged({ check, stock, existing, newestBefore, staged: rows })
  await replaceFile(join(folder, runFiles.staged), JSON.stringify(note, null, 2))
  options.onStaged()
  return await withOpen({ ledger, plan, staged: note })
}

/** Of so few changes none goes first: they are soon looked through. */
const smallFile = 20

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
  let open = 0
  for (const { state, number } of await ledger.counts({ run }))
    if (state === 'staged' || state === 'sending' || state === 'unknown') open += number
  const isFirst = open > smallFile && plan.canary > 0 && (await ledger.claims({ run })) === 0
  const kind = importKinds[plan.kind].change
  const canary = isFirst ? await chooseCanary({ ledger, run, kind, size: plan.canary }) : []
  return { ...staged, open, canary }
}

async function lookForExisting(options: StageOptions & { stock: Stock }): Promise<Existing> {
  const { deps, plan, billing, stock, signal } = options
  if (plan.kind !== 'retentions') return { ids: new Map(), reasons: [] }
  const { readLagMs, concurrency } = deps
  const testMode = plan.identity.mode === 'test'
  return await findExisting({ billing, wanted: stock.wanted, testMode, readLagMs, concurrency, signal })
}

interface Choices {
  stock: Stock
  existing: Existing
  drafts: ReturnType<typeof draftsOf>
}

/** Stages the rows, after they were kept beside the run. Returns their number. */
async function stageAll(options: StageOptions & Choices): Promise<number> {
  const { deps, plan, signal } = options
  const folder = join(deps.dataDir, plan.folder)
  const staged = await keepStagedChanges({ folder, changes: changesOf(options) })
  await createClaimJournal(folder)
  await stageKeptChanges({
    ledger: deps.state.ledger,
    run: plan.run,
    space: plan.identity,
    kind: importKinds[plan.kind].change,
    folder,
    signal,
    onHeld: async ([first]) => {
      // Another run took it between the look and now.
      throw new RowsTaken(`Row ${first?.row} was just taken by the run ${first?.by.run}. Let it end first.`)
    },
  })
  return staged
}

async function* changesOf(
  options: Choices & { plan: ImportPlan; signal: AbortSignal },
): AsyncGenerator<ChangeToStage[]> {
  const { plan, stock, existing, drafts, signal } = options
  for await (const batch of drafts) {
    signal.throwIfAborted()
    yield batch.map((draft): ChangeToStage => {
      const { row, body, key } = draft
      const ids = existing.ids.get(key)
      const closed = draft.closed ?? whyLeftOut({ row, stock, ids, plan })
      return {
        row,
        body,
        ...(closed && { closed }),
        ...(ids && { existing: ids }),
        ...(plan.sendAgain.includes(row) && { sendAgain: true }),
      }
    })
  }
}

function whyLeftOut(options: {
  row: number
  stock: Stock
  ids: readonly string[] | undefined
  plan: ImportPlan
}): ChangeToStage['closed'] {
  const { row, stock, ids, plan } = options
  if (stock.doneEarlier.has(row))
    return { state: 'dropped', outcome: 'doneEarlier', error: 'an earlier run has done it' }
  if (ids !== undefined && plan.existing === 'skip')
    return { state: 'dropped', outcome: 'existed', error: `the service had it already, as ${ids.join(', ')}` }
  return undefined
}

function toStaged({
  check,
  stock,
  existing,
  newestBefore,
  staged = 0,
}: {
  check: FileCheck
  stock?: Stock
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
    doneEarlier: stock?.doneEarlier.size ?? 0,
    existed: existing?.ids.size ?? 0,
    totals: check.totals,
    existingReasons: existing?.reasons ?? [],
    ...(newestBefore !== undefined && { newestBefore }),
    open: 0,
    canary: [],
  }
}
