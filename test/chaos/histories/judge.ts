import { readFile } from 'node:fs/promises'
import { parse } from 'csv-parse/sync'
import type { ImportResult } from '../../../core/imports/view.ts'
import type { RecoveryReport } from '../../../core/recoveries/view.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import type { Subject } from './subjects.ts'

/** What is said of a row, and what is not so. */
type Finding = string

/** No change is in the service twice, whatever any report says. */
export const doublesOf = ({ made }: Subject): Finding[] =>
  [...made()].flatMap(([value, ids]) =>
    ids.length > 1 ? [`${value} is there ${ids.length} times: ${ids.join(', ')}`] : [],
  )

/** Holds the report of an import, as people read it, against the service's own rows. */
export async function judgeImport({
  result,
  subject,
}: {
  result: ImportResult
  subject: Subject
}): Promise<Finding[]> {
  const { counts, files, verdict } = result
  if (files.results === undefined) return verdict === 'proven' ? ['proven without results'] : []
  const rows = parse<Record<string, string>>(await readFile(files.results, 'utf8'), { columns: true })
  const made = subject.made()
  const findings: Finding[] = []
  const seen = new Map<string, number>()
  for (const row of rows) {
    const value = row[subject.column] ?? ''
    const status = row['_status'] ?? ''
    seen.set(status, (seen.get(status) ?? 0) + 1)
    const ids = made.get(value) ?? []
    const isThere = ids.length > 0
    if (status === 'done' && !isThere) findings.push(`${value} is called done and is not there`)
    if (status === 'done' && isThere && !ids.includes(row['_id'] ?? ''))
      findings.push(`${value} is called done as ${row['_id']} and is ${ids.join(', ')}`)
    const isCalledUntouched = status === 'rejected' || status === 'not tried' || status === 'staged'
    if (isCalledUntouched && isThere)
      findings.push(`${value} is called ${status} and is there: ${row['_error']}`)
    if (verdict === 'proven' && status !== 'done' && status !== 'rejected' && status !== 'skipped')
      findings.push(`proven, and ${value} is ${status}`)
  }
  const values = rows.map((row) => row[subject.column] ?? '')
  if (new Set(values).size !== subject.values.length || values.length !== subject.values.length)
    findings.push(`results.csv has ${values.length} rows, and the file ${subject.values.length}`)
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
  if (all !== subject.values.length) findings.push(`${all} rows are counted of ${subject.values.length}`)
  if ((seen.get('done') ?? 0) > counts.done)
    findings.push(`${seen.get('done')} rows are done, and ${counts.done} counted`)
  if (verdict === 'proven' && counts.done + counts.rejected + counts.skipped < subject.values.length)
    findings.push('proven, and rows are missing')
  return findings
}

/** How often each subscription was resumed with effect, whatever the resume ended in. */
export function resumesOf(sandbox: Sandbox, after = 0): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { effect, id } of sandbox.control.effects({ after }))
    if (effect === 'resume') counts.set(String(id), (counts.get(String(id)) ?? 0) + 1)
  return counts
}

/** Nothing was resumed more often than people allowed. */
export const excessOf = ({ sandbox, attempts }: { sandbox: Sandbox; attempts: number }): Finding[] =>
  [...resumesOf(sandbox)].flatMap(([id, times]) =>
    times > attempts ? [`${id} was resumed ${times} times, and attempts is ${attempts}`] : [],
  )

/** Holds the report of a recovery, and the rows that it is made of, against the service. */
export function judgeRecovery({
  result,
  rows,
  sandbox,
  since,
}: {
  result: RecoveryReport
  rows: readonly LedgerRow[]
  sandbox: Sandbox
  /** The mark of the service at which the run began. */
  since: number
}): Finding[] {
  const { counts, verdict } = result
  const resumed = resumesOf(sandbox, since)
  const findings: Finding[] = []
  for (const { key, state, outcome, error } of rows) {
    const record = sandbox.control.get({ resource: 'subscriptions', id: key })
    const status = String(record?.['status'])
    if (state === 'done' && status !== 'active') findings.push(`${key} is called ${outcome} and is ${status}`)
    const times = resumed.get(key) ?? 0
    const isCalledUntouched = outcome === 'notTried' || outcome === 'coolingDown' || state === 'rejected'
    if (isCalledUntouched && times > 0)
      findings.push(`${key} is called ${outcome} (${error}) and was resumed ${times} times`)
  }
  if (new Set(rows.map(({ key }) => key)).size !== rows.length) findings.push('a subscription has two rows')
  // What was resumed, or was to be, and needs a person now is never only reported.
  if (verdict === 'proven')
    for (const { key, state, outcome, sends, breakerKey } of rows)
      if (
        state === 'parked' &&
        (sends > 0 || (breakerKey === 'gateway_issue' && outcome !== 'attemptsUsedUp'))
      )
        findings.push(`proven, and ${key} is parked: ${outcome}`)
  const open = counts.unknown + counts.parked + counts.staged + counts.notTried
  if (verdict === 'proven' && counts.unknown + counts.staged > 0)
    findings.push(`proven, and ${open} are open`)
  return findings
}
