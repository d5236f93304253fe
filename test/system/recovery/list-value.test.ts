import { Big } from 'big.js'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { triedReasons } from '../../../core/recoveries/reasons.ts'
import { decimal } from '../../../sandbox/data/values.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import {
  connectTemporal,
  createWorld,
  openTestWorker,
  startRun,
  startTestWorker,
  until,
} from '../export/world.ts'
import { quick, recoveryCsv, resume, startRecovery, statusOf } from './world.ts'

/** The same question in SQL, for someone who has only the warehouse. */
const inSql = (ids?: readonly string[]) => `
  with line as (
    select s.id, s.needs_attention_reason as reason, p.id as plan, p.currency,
      p.amount * cast(l.quantity as decimal(8, 0)) as value
    from subscriptions s join subscription_lines l on l.subscription_id = s.id left join plans p on p.id = l.plan
    where s.status = 'needs_attention' and s.needs_attention_reason in (${quoted(triedReasons)})
      ${ids === undefined ? '' : `and s.id in (${quoted(ids)})`}
  )
  select reason, currency, cast(sum(value) as text) as value from line
  where id not in (select id from line where plan is null) group by all`

const quoted = (texts: readonly string[]) => texts.map((text) => `'${text}'`).join(', ')

type Sums = Record<string, Record<string, string>>

/** Digits without the zeros at their end: a warehouse has eight decimal places in every column. */
const exact = (digits: string) => new Big(digits).toFixed()

function toSums(rows: readonly object[] = []): Sums {
  const sums: Sums = {}
  for (const { reason, currency, value } of rows as Record<string, string>[])
    (sums[reason ?? ''] ??= {})[currency ?? ''] = exact(value ?? '')
  return sums
}

const inDigits = (sums: Sums): Sums =>
  Object.fromEntries(
    Object.entries(sums).map(([reason, currencies]) => [
      reason,
      Object.fromEntries(Object.entries(currencies).map(([currency, sum]) => [currency, exact(sum)])),
    ]),
  )

test('the list value of a preview and of what was recovered is that of the warehouse to the last digit, although prices and workers change in between', async () => {
  const counts = { customers: 20, subscriptions: 200, plans: 25, retentions: 0, orders: 0 }
  const world = await createWorld({ counts, needsAttention: 0.4 })
  const { control } = world.sandbox
  const [gone = '', long = '', ...others] = control.ids({ resource: 'plans' })
  control.update({ resource: 'plans', id: long, fields: { amount: decimal('12345678901234567.89') } })
  control.delete({ resource: 'plans', id: gone })
  const worker = await openTestWorker(world, { BILLING_SETTLE_SECONDS: '0.3' })
  const client = await connectTemporal()
  const input = { resources: ['subscriptions' as const, 'plans' as const], to: ['duckdb' as const] }
  expect(await (await startRun({ client, world, input })).result()).toMatchObject({ verdict: 'proven' })
  const ask = (ids?: readonly string[]) => askDuckDb(join(world.dataDir, 'warehouse.duckdb'), inSql(ids))
  const inWarehouse = toSums(await ask())
  expect(Object.keys(inWarehouse).toSorted()).toEqual([...triedReasons].toSorted())

  const dry = await (await startRecovery({ client, world, input: { dryRun: true } })).result()
  const { listValue } = dry.preview ?? {}
  expect(inDigits(listValue?.byReason ?? {})).toEqual(inWarehouse)
  const dryRows = [...(await recoveryCsv(dry)).values()]
  const notValued = dryRows.filter(
    (row) =>
      row['outcome'] === 'would be resumed' && row['not_valued'] === 'a plan is not in the list of plans',
  )
  expect(notValued.length).toBeGreaterThan(0)
  expect(listValue?.notValued).toEqual({ 'a plan is not in the list of plans': notValued.length })

  control.setFaults({ faults: [{ kind: 'fallBack', on: resume, to: 8 }] })
  const bounds = { approval: true, canary: 0, maxChanges: 30, attempts: 1, firstWait: '30s' }
  const run = await startRecovery({ client, world, input: { ...quick, ...bounds } })
  await until(async () => (await statusOf(run)).waitingFor !== undefined)
  for (const id of [long, ...others]) control.update({ resource: 'plans', id, fields: { amount: 1 } })
  await worker.stop()
  await startTestWorker(world, { BILLING_SETTLE_SECONDS: '0.3' })
  await run.executeUpdate('approve', { args: [{ by: 'Ana', why: 'the gateway is back' }] })
  const result = await run.result()
  const rows = [...(await recoveryCsv(result)).values()]
  const idsOf = (...outcomes: string[]) =>
    rows.filter(({ outcome = '' }) => outcomes.includes(outcome)).map(({ subscription = '' }) => subscription)
  const recovered = idsOf('recovered')
  expect(recovered).toHaveLength(22)
  expect(inDigits(result.recoveredValue.byReason)).toEqual(toSums(await ask(recovered)))
  const toResume = toSums(await ask(idsOf('recovered', 'attempts used up')))
  expect(inDigits(result.preview?.listValue.byReason ?? {})).toEqual(toResume)
  expect(toResume).not.toEqual(toSums(await ask(recovered)))
  const page = await readFile((result.files.report ?? '').replace(/json$/, 'html'), 'utf8')
  expect(page).toContain('list price, not invoiced amounts')
  expect(page).toContain('has no invoices')
})

test('a recovery whose token may not read plans resumes all the same, and says how many it could not value', async () => {
  const world = await createWorld({
    counts: { customers: 5, subscriptions: 12, plans: 3, retentions: 0, orders: 0 },
    needsAttention: 1,
    faults: [{ kind: 'error', status: 403, on: 'GET /plans/' }],
  })
  await startTestWorker(world, { BILLING_SETTLE_SECONDS: '0.3' })
  const client = await connectTemporal()
  const result = await (await startRecovery({ client, world, input: quick })).result()
  expect(result).toMatchObject({ verdict: 'proven', recoveredValue: { byReason: {} } })
  const [[why, number] = []] = Object.entries(result.recoveredValue.notValued)
  expect(why).toMatch(/^the plans were not read completely: .*403/)
  expect(number).toBe(result.counts.done)
})
