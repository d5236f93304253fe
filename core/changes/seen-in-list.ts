import { toInstant } from '../billing/instants.ts'
import type { SourceRecord } from '../reading/record.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { Mode } from '../state/schema.ts'
import { type AuditOptions } from './audit/finding.ts'
import { type ListRead, lowerBound, readDown } from './audit/audit-retentions.ts'
import { textOf } from './compare-fields.ts'
import { createRetention, idsBefore, retentionKey } from './kinds/create-retention.ts'
import { moveToUnknown } from './restored-ledger.ts'

/**
 * Reads the list of retentions from its newest record down to before the run's first send. A staged row that is in the
 * list becomes unknown: it was sent, and then ledger, files and Temporal were all restored from an earlier backup.
 * Records that existed at staging, or that belong to other rows of the ledger, are ignored. If the list could not be read
 * completely, or shows nothing of what was there before, every staged row becomes unknown. Returns the number of rows.
 */
export async function markSeenInList({
  ledger,
  run,
  workspace,
  mode,
  now = ledger.now,
  newestBefore,
  ...list
}: Omit<ListRead, 'testMode'> & {
  newestBefore: AuditOptions['newestBefore']
  ledger: Ledger
  run: string
  workspace: string
  mode: Mode
  now?: () => number
}): Promise<number> {
  let marked = 0
  const before = toInstant(newestBefore)
  let showsOlder = before === undefined
  const bound = lowerBound({ newestBefore, readLagMs: list.readLagMs })
  const take = async (records: readonly SourceRecord[]) => {
    showsOlder ||= records.some(({ created }) => (toInstant(created) ?? Infinity) <= (before ?? -Infinity))
    const byKey = Map.groupBy(records, retentionKey)
    const space = { workspace, mode, kind: createRetention.name, keys: [...byKey.keys()] }
    const staged = (await ledger.underKeys({ run, ...space })).filter(({ state }) => state === 'staged')
    if (staged.length === 0) return
    const others = (await ledger.holders(space)).flatMap(({ answerId }) => answerId ?? [])
    for (const row of staged) {
      const known = new Set([...others, ...idsBefore(row.before)])
      if ((byKey.get(row.key) ?? []).every((record) => known.has(textOf(record['id'])))) continue
      if (await moveToUnknown({ ledger, row, now })) marked += 1
    }
  }
  const { reasons, toEnd } = await readDown({ ...list, testMode: mode === 'test' }, { bound, take })
  if (reasons.length > 0 || (toEnd && !showsOlder))
    for await (const row of ledger.rows({ run, state: 'staged' }))
      if (await moveToUnknown({ ledger, row, now })) marked += 1
  return marked
}
