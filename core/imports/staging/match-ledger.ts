import { parseBody } from '../../changes/body.ts'
import { differencesOf } from '../../changes/compare-fields.ts'
import { idsKnownTo } from '../../changes/kinds/create-retention.ts'
import type { Outcome } from '../../changes/outcomes.ts'
import type { ChangesFile } from '../../changes/staged-changes.ts'
import { closedBy, type FileCheck } from '../check.ts'
import { importKinds } from '../kinds.ts'
import type { ImportPlan } from '../input.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { mayRepeat, type NewChange } from '../../state/ledger/stage.ts'

/** How the rows of a file relate to the ledger's rows of earlier and other runs. */
export interface LedgerMatches {
  /** The keys of changes that the service may already have. */
  lookups: Set<string>
  /** Ids of these in the service that are those of earlier runs, or that were accepted there. */
  known: Set<string>
  /** Rows whose keys another run holds, by that run. */
  held: Map<string, HeldRows>
  /** Rows that an earlier run did, and that run's row. */
  doneEarlier: Map<number, EarlierRow>
  /** Changes without a problem. */
  valid: number
}

export interface EarlierRow extends Pick<LedgerRow, 'run' | 'answerId'> {
  /** It is done, but in doubt. */
  isDoubtful: boolean
  /** The fields that this file has with other values. */
  differences: string[]
}

interface HeldRows {
  /** How many of them the run has done. */
  done: number
  /** Changes the run has not sent. */
  unsent: { row: number; change: Pick<LedgerRow, 'id' | 'claims'> }[]
  /** All others: in flight, unknown or parked. */
  active: number[]
}

/** Looks up each change of a file in the ledger, before staging any. */
export async function matchLedger({
  ledger,
  plan,
  check,
  changes,
}: {
  ledger: Ledger
  plan: ImportPlan
  check: FileCheck
  changes: ChangesFile
}): Promise<LedgerMatches> {
  const { workspace, mode } = plan.identity
  const kind = importKinds[plan.kind].change.name
  const matches: LedgerMatches = {
    lookups: new Set(),
    known: new Set(),
    held: new Map(),
    doneEarlier: new Map(),
    valid: 0,
  }
  for await (const batch of changes.batches()) {
    const open = batch.filter((change) => closedBy(check, change) === undefined)
    matches.valid += open.length
    const holders = await ledger.holders({ workspace, mode, kind, keys: open.map(({ key }) => key) })
    const byKey = Map.groupBy(holders, ({ key }) => key)
    for (const change of open) {
      const rows = byKey.get(change.key) ?? []
      const holder = rows.at(-1)
      const isHeld =
        holder !== undefined && holder.run !== plan.run && !mayBeSentAgain({ plan, holder, change })
      if (isHeld) addHeld({ matches, holder, change, plan })
      // Also what is sent again, and what a lost attempt of this run has staged: somebody may have created it since.
      if (holder === undefined || holder.state === 'staged' || !(isHeld || holder.run === plan.run)) {
        matches.lookups.add(change.key)
        for (const id of idsKnownTo(rows.filter(({ run }) => run !== plan.run))) matches.known.add(id)
      }
    }
  }
  return matches
}

interface Match {
  holder: LedgerRow
  change: NewChange
}

function mayBeSentAgain({ plan, holder, change }: Match & { plan: ImportPlan }): boolean {
  const { repeats } = importKinds[plan.kind].change
  return mayRepeat({ by: holder, change, repeats })
}

/** Outcomes of rows that are done, but that make their run unproven. */
const doubtful: readonly (string | null)[] = [
  'resolved',
  'doubled',
  'storedDifferently',
  'wrongMode',
] satisfies Outcome[]

function addHeld(of: Match & { matches: LedgerMatches; plan: ImportPlan }): void {
  const { matches, holder, change, plan } = of
  const { row } = change
  const held = matches.held.get(holder.run) ?? { done: 0, unsent: [], active: [] }
  matches.held.set(holder.run, held)
  if (holder.state === 'done') {
    held.done += 1
    const { schema } = importKinds[plan.kind]
    const differences = differencesOf({ schema, sent: parseBody(change), stored: parseBody(holder) })
    matches.doneEarlier.set(row, {
      run: holder.run,
      answerId: holder.answerId,
      isDoubtful: doubtful.includes(holder.outcome),
      differences: differences.map(({ field, sent, stored }) => `${field} was ${stored} and is ${sent} here`),
    })
  } else if (holder.state === 'staged')
    held.unsent.push({ row, change: { id: holder.id, claims: holder.claims } })
  else held.active.push(row)
}
