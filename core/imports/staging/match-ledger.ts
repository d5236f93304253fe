import type { ChangeToStage } from '../../changes/stage-changes.ts'
import { type StagedRow, stageFile } from './stage.ts'
import { importKinds } from '../kinds.ts'
import type { ImportPlan } from '../plan.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import { mayRepeat } from '../../state/ledger/stage.ts'
import { textOf } from '../../changes/compare-fields.ts'

/** Rows of a file that something keeps from being sent. */
export interface Stock {
  /** The keys of what is left to send, each with the filters that find it in the service. */
  wanted: Map<string, Record<string, string>>
  /** By the run that holds their keys. */
  held: Map<string, Held>
  /** Rows that were done by an earlier run. */
  doneEarlier: Set<number>
  /** Changes without a problem. */
  valid: number
}

interface Held {
  /** How many of them it has done. */
  done: number
  /** What it has not sent. */
  waiting: { row: number; held: Pick<LedgerRow, 'id' | 'sends'> }[]
  /** The rows of all others: on their way, in doubt, or for a person. */
  others: number[]
}

/** So many keys are asked for at once: a page of the ledger, small beside the rows of a file. */
export const batchRows = 1_000

type Draft = StagedRow

/** The changes of a file, only those asked for where they are to be sent again. */
export async function* draftsOf(
  plan: ImportPlan,
  options: Parameters<typeof stageFile>[0],
): AsyncGenerator<Draft[]> {
  let batch: Draft[] = []
  for await (const draft of stageFile(options)) {
    if (plan.sendAgain.length > 0 && !plan.sendAgain.includes(draft.row)) continue
    batch.push(draft)
    if (batch.length < batchRows) continue
    yield batch
    batch = []
  }
  yield batch
}

/** Looks each change of a file up in the ledger before any of them is staged. */
export async function takeStock({
  ledger,
  plan,
  drafts,
}: {
  ledger: Ledger
  plan: ImportPlan
  drafts: AsyncIterable<Draft[]>
}): Promise<Stock> {
  const { change } = importKinds[plan.kind]
  const { workspace, mode } = plan.identity
  const stock: Stock = { wanted: new Map(), held: new Map(), doneEarlier: new Set(), valid: 0 }
  for await (const batch of drafts) {
    const open = batch.filter(({ closed }) => closed === undefined)
    stock.valid += open.length
    const keys = open.map(({ key }) => key)
    const holders = await ledger.holders({ workspace, mode, kind: change.name, keys })
    const byKey = new Map(holders.map((row) => [row.key, row]))
    for (const draft of open) {
      const by = byKey.get(draft.key)
      const isOthers = by !== undefined && by.run !== plan.run && !mayGoAgain({ plan, by, draft })
      if (isOthers) count({ stock, by, draft })
      if (by === undefined || (isOthers && by.state === 'staged'))
        stock.wanted.set(draft.key, filtersOf({ plan, draft }))
    }
  }
  return stock
}

function mayGoAgain({ plan, by, draft }: { plan: ImportPlan; by: LedgerRow; draft: ChangeToStage }): boolean {
  const { repeats } = importKinds[plan.kind].change
  const change = { body: JSON.stringify(draft.body), sendAgain: plan.sendAgain.includes(draft.row) }
  return mayRepeat({ by, change, repeats })
}

function count({ stock, by, draft }: { stock: Stock; by: LedgerRow; draft: Draft }): void {
  const held = stock.held.get(by.run) ?? { done: 0, waiting: [], others: [] }
  stock.held.set(by.run, held)
  if (by.state === 'done') {
    held.done += 1
    stock.doneEarlier.add(draft.row)
  } else if (by.state === 'staged')
    held.waiting.push({ row: draft.row, held: { id: by.id, sends: by.sends } })
  else held.others.push(draft.row)
}

function filtersOf({ plan, draft }: { plan: ImportPlan; draft: Draft }): Record<string, string> {
  const { identifiers } = importKinds[plan.kind]
  return Object.fromEntries(identifiers.map((field) => [field, textOf(draft.body[field])]))
}
