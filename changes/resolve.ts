import type { Ledger } from '../state/ledger.ts'
import { NotParkedError } from './errors.ts'
import { move } from './moves.ts'

export type Decision =
  /** It is there, under this id. */
  | { exists: string }
  /** It is not there: send it again. */
  | { absent: true }
  /** Leave it. */
  | { drop: true }

/**
 * What a person found out about a parked change, with who says so and why; both go into the report. Said again in
 * the same words it changes nothing.
 * Throws NotParkedError, and KeyHeldError where another run has staged the same key meanwhile.
 */
export async function resolveChange({
  ledger,
  run,
  row,
  decision,
  by,
  why,
  now = Date.now,
}: {
  ledger: Ledger
  run: string
  row: number
  decision: Decision
  by: string
  why: string
  now?: () => number
}): Promise<void> {
  const change = await ledger.row({ run, row })
  if (change === undefined) throw new NotParkedError({ run, row, state: undefined })
  const person = { resolvedBy: by, resolvedWhy: why }
  const target = targetOf(decision)
  const patch = { ...person, ...target.patch, ...(target.to !== 'staged' && { closedAt: now() }) }
  const moved = await move({
    ledger,
    row: change,
    by: 'person',
    to: target.to,
    outcome: target.outcome,
    patch,
  })
  const isSame = change.resolvedBy === by && change.resolvedWhy === why
  // What was proven absent may have been sent since.
  const isSaid = isSame && ('absent' in decision || change.outcome === target.outcome)
  if (!moved && !isSaid) throw new NotParkedError({ run, row, state: change.state })
}

function targetOf(decision: Decision) {
  if ('exists' in decision)
    return { to: 'done', outcome: 'resolved', patch: { answerId: decision.exists, holdsKey: true } } as const
  if ('absent' in decision)
    return { to: 'staged', outcome: 'absent', patch: { holdsKey: true, notBefore: 0 } } as const
  return { to: 'dropped', outcome: 'dropped', patch: {} } as const
}
