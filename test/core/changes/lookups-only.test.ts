import { expect, test } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { createSendRight } from '../../../core/changes/send/send-right.ts'
import { copies, retentionRows, startEngine, startSandbox } from './engine.ts'
import { leaseOf } from '../state/sender-of.ts'

const settleMs = 20

test.each([
  // Nothing in the list shows that a record of this kind would be seen, so a person decides.
  ['before the request left', { parked: 1, done: 0 }],
  ['after the service had done it', { parked: 0, done: 1 }],
] as const)(
  'a segment that only looks up finds what a killed worker was sending: killed %s',
  async (_killed, counts) => {
    const sandbox = await startSandbox()
    const kind = changeKinds['create-retention']
    const engine = await startEngine({ kind, sandbox, settleMs })
    const { ledger, run } = engine
    await engine.stage(retentionRows(2))
    const [row] = await engine.rows()
    const before = createSendRight({ ledger, run, lease: leaseOf(run) })
    await ledger.claim({ sender: await before.hold(), id: row?.id ?? 0, sends: 0, at: ledger.now() })
    const fields = JSON.parse(row?.body ?? '{}') as Record<string, unknown>
    if (counts.done === 1) sandbox.control.insert({ resource: 'retentions', fields })

    const step = await engine.sendSegment({ lookupsOnly: true })
    expect(step).toMatchObject({ ended: 'finished', counts: { staged: 1, unknown: 0, ...counts } })
    expect(copies(sandbox, 'retentions', 'number').size).toBe(counts.done)
  },
)
