import { expect, test } from 'vitest'
import type { Billing } from '../../../core/billing/client.ts'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { type Decision, resolveChange } from '../../../core/changes/resolve.ts'
import type { RowPatch } from '../../../core/state/ledger/row.ts'
import { recordAnswer } from '../../../core/changes/transitions.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import {
  addonRows,
  clientOf,
  contactRows,
  copies,
  retention,
  retentionRows,
  startEngine,
  startRun,
} from './engine.ts'

const person = { by: 'Ana', why: 'seen in the dashboard' }

/** Three retentions that were stored, although their replies were lost, and that nobody could look up. */
async function parkRetentions() {
  const { sandbox, engine } = await startRun(changeKinds['create-retention'], retentionRows(3), {
    counts: { retentions: 3 },
    faults: [{ kind: 'reset', effect: 'done', on: 'POST /retentions/', requests: [1, 2, 3] }],
  })
  await engine.send()
  const { ledger, run } = engine
  for (const { id } of await engine.rows())
    await ledger.move({ id, from: ['unknown'], patch: { state: 'parked', outcome: 'controlFailed' } })
  const stored = [...sandbox.control.records({ resource: 'retentions' })].map(
    (text) => JSON.parse(text) as { id: number; number: number; supplier: string },
  )
  const { number, supplier } = retention(1)
  const ofFirst = stored.find((one) => one.number === number && one.supplier === supplier)
  const options = { ledger, billing: clientOf(sandbox), run, row: 1, ...person }
  const others = stored.filter((one) => one !== ofFirst)
  return { sandbox, engine, options, id: String(ofFirst?.id), others }
}

test('the service is asked for the id that a person gives: it confirms the right one, and a wrong one is refused', async () => {
  const { engine, options, id, others } = await parkRetentions()
  for (const exists of ['ret_1', String(others[0]?.id)])
    await expect(resolveChange({ ...options, decision: { exists } })).rejects.toMatchObject({
      name: 'WrongIdError',
      message: `Row 1 cannot exist as ${exists}: the service has ${id} under the key of this row. Nothing was changed.`,
    })
  expect((await engine.rows())[0]).toMatchObject({ state: 'parked', resolvedBy: null })
  expect(await resolveChange({ ...options, decision: { exists: id } })).toEqual({ confirmed: true })
  expect((await engine.rows())[0]).toMatchObject({ state: 'done', outcome: 'resolved', answerId: id })
})

test('a service whose filters find nothing, not even what its list shows, refuses no id that a person has seen', async () => {
  const { options, id } = await parkRetentions()
  const list: Billing['list'] = async (query) => {
    const page = await options.billing.list(query)
    return query.filters === undefined ? page : { ...page, records: [], count: 0, next: null }
  }
  const billing = { ...options.billing, list }
  expect(await resolveChange({ ...options, billing, decision: { exists: id } })).toEqual({
    confirmed: false,
    reason: 'the lookup does not find a record that the list shows, either',
  })
})

test('a row that the service has is not sent again because a person says that it is absent', async () => {
  const { sandbox, engine, options, id } = await parkRetentions()
  const decision = { absent: true } as const
  await expect(resolveChange({ ...options, decision })).rejects.toMatchObject({
    name: 'NotAbsentError',
    message: `Row 1 of run-1 is not absent: the service has it as ${id}. Resolve it as existing.`,
  })
  expect((await engine.rows())[0]).toMatchObject({ state: 'parked', resolvedBy: null })
  // Nor one that nobody can look up just now.
  sandbox.control.setFaults({ faults: [{ kind: 'reset', effect: 'none', on: 'GET /retentions/' }] })
  await expect(resolveChange({ ...options, decision })).rejects.toMatchObject({ retryable: true })
  expect((await engine.rows())[0]).toMatchObject({ state: 'parked', resolvedBy: null })
  sandbox.control.setFaults({ faults: [] })
  sandbox.control.delete({ resource: 'retentions', id: Number(id) })
  await resolveChange({ ...options, decision })
  expect((await engine.rows())[0]).toMatchObject({ state: 'staged', outcome: 'absent' })
})

test('a service that does not answer or does not filter confirms nothing and refuses nothing', async () => {
  const { sandbox, engine, options, id } = await parkRetentions()
  sandbox.control.setFaults({ faults: [{ kind: 'reset', effect: 'none', on: 'GET /retentions/' }] })
  const asked = await resolveChange({ ...options, decision: { exists: '999999' } })
  expect(asked).toMatchObject({ confirmed: false })
  expect((await engine.rows())[0]).toMatchObject({ answerId: '999999' })
  sandbox.control.setFaults({ faults: [] })
  // It is corrected; the same decision again changes nothing.
  for (const confirmed of [{ confirmed: true }, undefined])
    expect(await resolveChange({ ...options, decision: { exists: id } })).toEqual(confirmed)
  expect((await engine.rows())[0]).toMatchObject({ state: 'done', answerId: id })
})

/** An addon whose first requests got no reply and were not carried out, parked. */
async function parkAddon(...requests: number[]) {
  const lost = { kind: 'reset', effect: 'none', on: 'POST /addons/', requests } as const
  const { sandbox, engine } = await startRun(changeKinds['create-addon'], addonRows(1), { faults: [lost] })
  await engine.finish()
  const { ledger, run, billing } = engine
  return { sandbox, engine, options: { ledger, billing, run, row: 1, ...person } }
}

test.each([
  ['for another reason', 'add_77 is another one'],
  ['in the same words', person.why],
])('a correction may say that the row does not exist, %s: it is sent, once', async (_, why) => {
  const { sandbox, engine, options } = await parkAddon(1)
  expect(await resolveChange({ ...options, decision: { exists: 'add_77' } })).toEqual({
    confirmed: false,
    reason: 'the service has no list of these records',
  })
  await resolveChange({ ...options, decision: { absent: true }, why })
  expect((await engine.rows())[0]).toMatchObject({ state: 'staged', answerId: null, closedAt: null })
  await engine.finish()
  expect((await engine.rows())[0]).toMatchObject({ state: 'done', outcome: 'created' })
  expect(copies(sandbox, 'addons', 'name').get('Addon 1')).toBe(1)
  // Nobody can correct what the service itself answered.
  await expect(resolveChange({ ...options, decision: { exists: 'add_78' } })).rejects.toThrow(
    'is done, not parked',
  )
})

test('a repeated decision is not applied to rows sent since, and a new one is', async () => {
  const { engine, options } = await parkAddon(1, 2, 3)
  const decision = { absent: true } as const
  const [found] = await engine.rows()
  const first = { ...options, decision, found }
  await resolveChange(first)
  await engine.finish()
  expect((await engine.rows())[0]).toMatchObject({ state: 'parked', claims: 2 })
  await resolveChange(first)
  await expect(resolveChange({ ...first, by: 'Eva' })).rejects.toThrow(
    'has changed since this decision was made',
  )
  expect((await engine.rows())[0]).toMatchObject({ state: 'parked', claims: 2 })
  await resolveChange({ ...first, found: undefined })
  expect((await engine.rows())[0]).toMatchObject({ state: 'staged' })
})

test('a decision that is repeated does not undo the correction that followed it', async () => {
  const { engine, options } = await parkAddon(1)
  const [found] = await engine.rows()
  const first = { ...options, decision: { exists: 'add_7' }, found }
  await resolveChange(first)
  await resolveChange(first)
  // Nobody corrects within the millisecond in which the row was parked.
  const { ledger } = options
  const later = { ...ledger, now: () => ledger.now() + 1 }
  const correction = { by: 'Eva', decision: { exists: 'add_77' }, found: undefined }
  await resolveChange({ ...first, ledger: later, ...correction })
  await expect(resolveChange(first)).rejects.toThrow('is done, not parked')
  expect((await engine.rows())[0]).toMatchObject({ resolvedBy: 'Eva', answerId: 'add_77' })
})

test('an update exists under the id of its own record only', async () => {
  const rows = [{ row: 1, body: { id: 'con_1', phone: '1' } }]
  const { sandbox, engine } = await startRun(changeKinds['update-contact'], rows)
  const { ledger, run } = engine
  for (const { id } of await engine.rows())
    await ledger.move({ id, from: ['staged'], patch: { state: 'parked', outcome: 'sentTooOften' } })
  const options = { ledger, billing: clientOf(sandbox), run, row: 1, ...person }
  await expect(resolveChange({ ...options, decision: { exists: 'con_2' } })).rejects.toThrow(
    'the row is about con_1',
  )
  expect(await resolveChange({ ...options, decision: { exists: 'con_1' } })).toMatchObject({
    confirmed: false,
  })
})

test('an update that a person corrects to absent is not sent over a later one', async () => {
  const kind = changeKinds['update-contact']
  const lost = { kind: 'reset', effect: 'none', on: 'PATCH /contacts/{id}/', requests: [1, 2, 3] } as const
  const rows = (name: string) => (sandbox: Sandbox) => contactRows(sandbox, 1, { name })
  const { sandbox, engine } = await startRun(kind, rows('First'), {
    counts: { customers: 1 },
    faults: [lost],
  })
  await engine.finish()
  const { ledger, billing, run, folder } = engine
  const options = { ledger, billing, run, row: 1, ...person }
  const [row] = await engine.rows()
  expect(row).toMatchObject({ state: 'parked', outcome: 'sentTooOften' })
  await resolveChange({ ...options, decision: { exists: row!.key } })
  const later = await startEngine({ kind, sandbox, folder, run: 'run-2' })
  await later.stage(rows('Second')(sandbox))
  const correction = { ...options, decision: { absent: true }, why: 'it has another name' } as const
  const refusal = 'row 1 of run-2 is a later update of its record'
  await expect(resolveChange(correction)).rejects.toThrow(refusal)
  await later.finish()
  await expect(resolveChange(correction)).rejects.toThrow(refusal)
  await engine.finish()
  expect([...sandbox.control.records({ resource: 'customers' })].join()).toContain('Second')
  expect(await engine.rows()).toMatchObject([{ state: 'done', outcome: 'resolved' }])
})

test('an answer that arrives while the service is asked wins over the person', async () => {
  const { engine, options, id } = await parkRetentions()
  const kind = changeKinds['create-retention']
  const answering: ChangeKind = {
    ...kind,
    async findUnderKey() {
      const [row] = await engine.rows()
      const answer = { answerId: id, answer: '{}', at: 1 }
      await recordAnswer({ ledger: options.ledger, row: row!, outcome: 'created', ...answer })
      return { records: [], honoured: false }
    },
  }
  const kinds = { [kind.name]: answering }
  await expect(resolveChange({ ...options, kinds, decision: { exists: '999999' } })).rejects.toThrow(
    'is done, not parked',
  )
  expect((await engine.rows())[0]).toMatchObject({ state: 'done', outcome: 'created', answerId: id })
})

const decisions: Decision[] = [{ exists: 'sub_1' }, { absent: true }, { drop: true }]

/** A parked subscription of a recovery. */
async function parkResume(patch: RowPatch) {
  const rows = [{ row: 1, body: { id: 'sub_1', customer: 'cus_1' } }]
  const { engine } = await startRun(changeKinds['resume-subscription'], rows)
  const { ledger, run, billing } = engine
  for (const { id } of await engine.rows())
    await ledger.move({ id, from: ['staged'], patch: { state: 'parked', ...patch } })
  return { engine, options: { ledger, billing, run, row: 1, ...person } }
}

test.for<[string, RowPatch]>([
  ['was never resumed', { outcome: 'needsPerson', error: 'reference_expired: ask for a new one' }],
  ['was not found before its resume', { outcome: 'notFound' }],
  ['was put back by a refusal', { outcome: 'needsPerson', sends: 0, answeredAt: 7 }],
  ['was seen to fall back', { outcome: 'fellBack', sends: 1, answeredAt: 7 }],
  ['used up its attempts', { outcome: 'attemptsUsedUp', sends: 3, answeredAt: 7 }],
])('a subscription that %s cannot be resolved by a person, whatever they say', async ([, patch]) => {
  const { engine, options } = await parkResume(patch)
  const before = await engine.rows()
  for (const decision of decisions)
    await expect(resolveChange({ ...options, decision })).rejects.toThrow(
      'Row 1 of run-1 cannot be resolved: only what was sent and lost its reply is in doubt.',
    )
  expect(await engine.rows()).toEqual(before)
  expect((await engine.segment({ lookupsOnly: true })).parkedRows).toEqual([])
})

test.for<[string, RowPatch]>([
  ['lost its reply and shows no effect', { outcome: 'attemptsUsedUp', sends: 1 }],
  ['was accepted and is in no list', { outcome: 'notFound', sends: 1, answeredAt: 7 }],
])('a subscription whose resume %s can be resolved by a person', async ([, patch]) => {
  for (const decision of decisions) {
    const { engine, options } = await parkResume(patch)
    expect((await engine.segment({ lookupsOnly: true })).parkedRows).toEqual([1])
    await resolveChange({ ...options, decision })
    expect((await engine.rows())[0]).toMatchObject({ resolvedBy: 'Ana' })
  }
})
