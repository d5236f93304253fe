import { cancellationSignal, heartbeat } from '@temporalio/activity'
import { join } from 'node:path'
import { newestCreated } from '../changes/audit-retentions.ts'
import { chooseCanary } from '../changes/canary.ts'
import { stageChanges, type ChangeToStage } from '../changes/stage-changes.ts'
import { replaceFile } from '../destinations/durable.ts'
import { checkFile, type FileCheck } from '../imports/check-file.ts'
import { importKinds } from '../imports/import-kind.ts'
import { type ImportPlan, runFiles } from '../imports/import-plan.ts'
import type { ImportFile } from '../imports/open-file.ts'
import { fileOf, readRunNotes, type StagedNote } from '../imports/run-notes.ts'
import type { ActivityDeps } from './deps.ts'
import { type Existing, findExisting } from './find-existing.ts'
import { refusing, RowsTaken } from './import-errors.ts'
import { withHeartbeat } from './with-heartbeat.ts'
import { refuseMissing, refuseTaken } from './refuse-rows.ts'
import type { RunRates } from './run-rates.ts'
import { keepWhatGoesOn, takeOverRows } from './take-over-rows.ts'
import { draftsOf, type Stock, takeStock } from './take-stock.ts'

/** What of a file is staged, and how much of it is still to be sent. */
export interface Staged extends StagedNote {
  open: number
  /** Rows that go first, unlike each other; none where there are few, or where the run was sending before. */
  canary: number[]
}

interface Staging {
  deps: ActivityDeps
  plan: ImportPlan
  file: ImportFile
  check: FileCheck
}

/**
 * Checks a whole file and stages its changes, or says why nothing of it may be sent. A run that was staged before is
 * left as it is. In a dry run nothing is staged.
 */
export function createStageImport({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  return async function stageImport({ plan }: { plan: ImportPlan }): Promise<Staged> {
    const folder = join(deps.dataDir, plan.folder)
    let phase = 'checking the file'
    return await withHeartbeat({
      report: () => heartbeat({ phase }),
      work: async () => {
        const { staged } = await readRunNotes(folder)
        if (staged !== undefined && !plan.dryRun) return await withOpen({ deps, plan, staged })
        const file = await fileOf({ plan, dataDir: deps.dataDir })
        const check = await checkFile({ ...file, expect: plan.expect })
        await replaceFile(join(folder, runFiles.check), JSON.stringify(check, null, 2))
        const staging = { deps, plan, file, check }
        const onInvalid = plan.dryRun ? 'skip' : plan.onInvalid
        if (plan.dryRun && check.stopped) return toStaged({ check })
        const drafts = () => draftsOf(plan, { ...file, check, onInvalid })
        phase = 'looking for what was done before'
        const stock = await takeStock({ ledger: deps.state.ledger, plan, drafts: drafts() })
        refuseMissing({ plan, stock, check })
        await keepWhatGoesOn({ deps, stock })
        phase = 'looking for what the service has already'
        const existing = await lookForExisting({ ...staging, rates, stock })
        refuseTaken({ plan, stock, existing })
        if (plan.dryRun) return toStaged({ check, stock, existing })
        phase = 'staging'
        const billing = rates.of({ run: plan.run, ...plan.limits })
        const newest =
          plan.kind === 'retentions'
            ? await newestCreated({ billing, signal: cancellationSignal() })
            : undefined
        await takeOverRows({ deps, plan, stock })
        await stageAll({ ...staging, stock, existing, drafts: drafts() })
        const note = toStaged({ check, stock, existing, newestBefore: newest })
        await replaceFile(join(folder, runFiles.staged), JSON.stringify(note, null, 2))
        return await withOpen({ deps, plan, staged: note })
      },
    }).catch((error: unknown) => {
      throw refusing(error)
    })
  }
}

/** Of so few changes none goes first: they are soon looked through. */
const smallFile = 20

async function withOpen({
  deps,
  plan,
  staged,
}: {
  deps: ActivityDeps
  plan: ImportPlan
  staged: StagedNote
}): Promise<Staged> {
  const { run } = plan
  const { ledger } = deps.state
  let open = 0
  for (const { state, number } of await ledger.counts({ run }))
    if (state === 'staged' || state === 'sending' || state === 'unknown') open += number
  const isFirst = open > smallFile && plan.canary > 0 && (await ledger.claims({ run })) === 0
  const kind = importKinds[plan.kind].change
  const canary = isFirst ? await chooseCanary({ ledger, run, kind, size: plan.canary }) : []
  return { ...staged, open, canary }
}

async function lookForExisting(options: Staging & { rates: RunRates; stock: Stock }): Promise<Existing> {
  const { deps, plan, rates, stock } = options
  if (plan.kind !== 'retentions') return { ids: new Map(), reasons: [] }
  return await findExisting({
    billing: rates.of({ run: plan.run, ...plan.limits }),
    wanted: stock.wanted,
    testMode: plan.identity.mode === 'test',
    readLagMs: deps.readLagMs,
    concurrency: deps.concurrency,
    signal: cancellationSignal(),
  })
}

async function stageAll(
  options: Staging & { stock: Stock; existing: Existing; drafts: ReturnType<typeof draftsOf> },
): Promise<void> {
  const { deps, plan, stock, existing, drafts } = options
  const { change } = importKinds[plan.kind]
  const { workspace, mode } = plan.identity
  for await (const batch of drafts) {
    const changes = batch.map((draft): ChangeToStage => {
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
    const { ledger } = deps.state
    const { held } = await stageChanges({ ledger, run: plan.run, workspace, mode, kind: change, changes })
    const [first] = held
    // Another run took it between the look and now.
    if (first !== undefined)
      throw new RowsTaken(`Row ${first.row} was just taken by the run ${first.by.run}. Let it end first.`)
    cancellationSignal().throwIfAborted()
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
}: {
  check: FileCheck
  stock?: Stock
  existing?: Existing
  newestBefore?: string | undefined
}): Staged {
  return {
    rows: check.totals.rows,
    changes: check.totals.changes,
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
