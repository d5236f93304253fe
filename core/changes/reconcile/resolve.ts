import type { Ledger } from '../../state/ledger/ledger.ts'
import { NotParkedError } from '../errors.ts'
import { transition } from '../transitions.ts'

export type Decision =
  /** It exists under this id. */
  | { exists: string }
  /** It does not exist: send it again. */
  | { absent: true }
  /** Drop it. */
  | { drop: true }

/**
 * Applies a person's decision on a parked change; `by` and `why` go into the report. Repeating the same decision changes
 * nothing.
 * @throws {NotParkedError}
 * @throws {KeyHeldError} if another run has staged the same key in the meantime
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
  const moved = await transition({
    ledger,
    row: change,
    by: 'person',
    to: target.to,
    outcome: target.outcome,
    patch,
  })
  const isSame = change.resolvedBy === by && change.resolvedWhy === why
  // A change declared absent may have been sent since.
  const isRepeated = isSame && ('absent' in decision || change.outcome === target.outcome)
  if (!moved && !isRepeated) throw new NotParkedError({ run, row, state: change.state })
}

function targetOf(decision: Decision) {
  if ('exists' in decision)
    return { to: 'done', outcome: 'resolved', patch: { answerId: decision.exists, holdsKey: true } } as const
  if ('absent' in decision)
    return { to: 'staged', outcome: 'absent', patch: { holdsKey: true, notBefore: 0 } } as const
  return { to: 'dropped', outcome: 'dropped', patch: {} } as const
}
