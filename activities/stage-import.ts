import { cancellationSignal, heartbeat } from '@temporalio/activity'
import { join } from 'node:path'
import { newestCreated } from '../changes/audit-retentions.ts'
import { chooseCanary } from '../changes/canary.ts'
import { createClaimJournal } from '../changes/claim-journal.ts'
import type { ChangeToStage } from '../changes/stage-changes.ts'
import { keepStagedChanges, stageKeptChanges } from '../changes/staged-changes.ts'
import { replaceFile } from '../destinations/durable.ts'
import { checkFile, type FileCheck } from '../imports/check-file.ts'
import { importKinds } from '../imports/import-kind.ts'
import { type ImportPlan, runFiles } from '../imports/import-plan.ts'
import type { ImportFile } from '../imports/open-file.ts'
import { refuseDamagedCopy } from '../imports/own-copy.ts'
import { fileOf, readRunNotes, type StagedNote } from '../imports/run-notes.ts'
import type { ActivityDeps } from './deps.ts'
import { type Existing, findExisting } from './find-existing.ts'
import { closeImportGap } from './import-gap.ts'
import { refusing, RowsTaken } from './import-errors.ts'
import { withHeartbeat } from './with-heartbeat.ts'
import { refuseMissing, refuseTaken } from './refuse-rows.ts'
import type { RunRates } from './run-rates.ts'
import { keepWhatGoesOn, learnWhatWasSent, takeOverRows } from './take-over-rows.ts'
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
export function createStageImport({
  deps,
  rates,
  stagedHere,
}: {
  deps: ActivityDeps
  rates: RunRates
  /** Gets the runs that this process has staged: their rows are as fresh as the service's list. */
  stagedHere: Set<string>
}) {
  return async function stageImport({ plan }: { plan: ImportPlan }): Promise<Staged> {
    const folder = join(deps.dataDir, plan.folder)
    let phase = 'checking the file'
    return await withHeartbeat({
      report: () => heartbeat({ phase }),
      work: async () => {
        const { staged } = await readRunNotes(folder)
        if (staged !== undefined && !plan.dryRun) {
          await closeImportGap({ deps, plan, staged, signal: cancellationSignal() })
          return await withOpen({ deps, plan, staged })
        }
        await refuseDamagedCopy({ plan, dataDir: deps.dataDir })
        const file = await fileOf({ plan, dataDir: deps.dataDir })
        const check = await checkFile({ ...file, expect: plan.expect })
        await replaceFile(join(folder, runFiles.check), JSON.stringify(check, null, 2))
        const staging = { deps, plan, file, check }
        const onInvalid = plan.dryRun ? 'skip' : plan.onInvalid
        if (plan.dryRun && check.stopped) return toStaged({ check })
        const drafts = () => draftsOf(plan, { ...file, check, onInvalid })
        phase = 'looking for what was done before'
        let stock = await takeStock({ ledger: deps.state.ledger, plan, drafts: drafts() })
        if (await learnWhatWasSent({ deps, stock }))
          stock = await takeStock({ ledger: deps.state.ledger, plan, drafts: drafts() })
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
        const rows = await stageAll({ ...staging, stock, existing, drafts: drafts() })
        const note = toStaged({ check, stock, existing, newestBefore: newest, staged: rows })
        await replaceFile(join(folder, runFiles.staged), JSON.stringify(note, null, 2))
        stagedHere.add(plan.run)
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

interface Choices {
  plan: ImportPlan
  stock: Stock
  existing: Existing
  drafts: ReturnType<typeof draftsOf>
}

/** Stages the rows, after they were kept beside the run. Returns their number. */
async function stageAll(options: Staging & Choices): Promise<number> {
  const { deps, plan } = options
  const folder = join(deps.dataDir, plan.folder)
  const staged = await keepStagedChanges({ folder, changes: changesOf(options) })
  await createClaimJournal(folder)
  await stageKeptChanges({
    ledger: deps.state.ledger,
    run: plan.run,
    space: plan.identity,
    kind: importKinds[plan.kind].change,
    folder,
    signal: cancellationSignal(),
    onHeld: async ([first]) => {
      // Another run took it between the look and now.
      throw new RowsTaken(`Row ${first?.row} was just taken by the run ${first?.by.run}. Let it end first.`)
    },
  })
  return staged
}

async function* changesOf({ plan, stock, existing, drafts }: Choices): AsyncGenerator<ChangeToStage[]> {
  for await (const batch of drafts) {
    cancellationSignal().throwIfAborted()
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
