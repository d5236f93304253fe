import { importKinds } from '../kinds.ts'
import type { ImportPlan } from '../plan.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { mayRepeat } from '../../state/ledger/stage.ts'
import { type StagedRow, type StageFileOptions, stageFile } from './stage.ts'

/** How the rows of a file relate to the ledger's rows of earlier and other runs. */
export interface LedgerMatches {
  /** The keys of changes that the service may already have. */
  lookups: Set<string>
  /** Rows whose keys another run holds, by that run. */
  held: Map<string, HeldRows>
  /** Rows that an earlier run did. */
  doneEarlier: Set<number>
  /** Changes without a problem. */
  valid: number
}

interface HeldRows {
  /** How many of them the run has done. */
  done: number
  /** Changes the run has not sent. */
  unsent: { row: number; change: Pick<LedgerRow, 'id' | 'claims'> }[]
  /** All others: in flight, unknown or parked. */
  active: number[]
}

/** The changes of a file in batches; only those to send again, if the plan names some. */
export async function* changesOf(plan: ImportPlan, options: StageFileOptions): AsyncGenerator<StagedRow[]> {
  const { sendAgain } = plan
  for await (const batch of stageFile(options))
    yield sendAgain.length === 0 ? batch : batch.filter(({ row }) => sendAgain.includes(row))
}

/** Looks up each change of a file in the ledger, before staging any. */
export async function matchLedger({
  ledger,
  plan,
  changes,
}: {
  ledger: Ledger
  plan: ImportPlan
  changes: AsyncIterable<StagedRow[]>
}): Promise<LedgerMatches> {
  const { workspace, mode } = plan.identity
  const kind = importKinds[plan.kind].change.name
  const matches: LedgerMatches = { lookups: new Set(), held: new Map(), doneEarlier: new Set(), valid: 0 }
  for await (const batch of changes) {
    const open = batch.filter(({ closed }) => closed === undefined)
    matches.valid += open.length
    const holders = await ledger.holders({ workspace, mode, kind, keys: open.map(({ key }) => key) })
    const byKey = new Map(holders.map((row) => [row.key, row]))
    for (const change of open) {
      const holder = byKey.get(change.key)
      const isHeld =
        holder !== undefined && holder.run !== plan.run && !mayBeSentAgain({ plan, holder, change })
      if (isHeld) addHeld({ matches, holder, change })
      // Also what a lost attempt of this run has staged: somebody may have created it since. Not what it sends again.
      const isRepeat = holder?.run === plan.run && holder.generation > 0
      if (holder === undefined || (holder.state === 'staged' && !isRepeat)) matches.lookups.add(change.key)
    }
  }
  return matches
}

interface Match {
  holder: LedgerRow
  change: StagedRow
}

function mayBeSentAgain({ plan, holder, change }: Match & { plan: ImportPlan }): boolean {
  const { repeats } = importKinds[plan.kind].change
  const toStage = { body: change.body, sendAgain: plan.sendAgain.includes(change.row) }
  return mayRepeat({ by: holder, change: toStage, repeats })
}

function addHeld({ matches, holder, change: { row } }: Match & { matches: LedgerMatches }): void {
  const held = matches.held.get(holder.run) ?? { done: 0, unsent: [], active: [] }
  matches.held.set(holder.run, held)
  if (holder.state === 'done') {
    held.done += 1
    matches.doneEarlier.add(row)
  } else if (holder.state === 'staged')
    held.unsent.push({ row, change: { id: holder.id, claims: holder.claims } })
  else held.active.push(row)
}
