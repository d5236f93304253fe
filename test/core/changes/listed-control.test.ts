import { expect, test } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import type { Billing } from '../../../core/billing/client.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { clientOf, requestsOf, retentionRows, startRun } from './engine.ts'

/** A restored run of which nothing is known to be done, in a workspace that has retentions of its own. */
async function restoredRun({ listed, blind = false }: { listed: number; blind?: boolean }) {
  const billing = (sandbox: Sandbox): Billing => {
    const service = clientOf(sandbox)
    const list: Billing['list'] = (query) =>
      service.list(blind && query.filters ? { ...query, filters: { number: '999999' } } : query)
    return { ...service, list }
  }
  const how = { counts: { retentions: listed }, billing }
  const { sandbox, engine } = await startRun(changeKinds['create-retention'], retentionRows(6), how)
  const restored = { at: Date.now(), bounded: { kinds: ['none' as const], sends: 1 }, forgotten: 0 }
  expect(await engine.ledger.markRestored(restored)).toEqual(new Map([[engine.run, 6]]))
  await engine.finish()
  return { posts: requestsOf(sandbox, 'POST').length, rows: await engine.rows() }
}

test('restored retentions that are absent are sent once, because the lookup finds a record that the list shows', async () => {
  const { posts, rows } = await restoredRun({ listed: 3 })
  expect(posts).toBe(6)
  expect(rows.map(({ state }) => state)).toEqual(Array.from({ length: 6 }, () => 'done'))
})

test.each([
  ['the list shows no record', { listed: 0 }, 'noControl'],
  ['the look-up finds nothing at all', { listed: 3, blind: true }, 'controlFailed'],
] as const)('restored retentions are parked where %s', async (_, service, outcome) => {
  const { posts, rows } = await restoredRun(service)
  expect(posts).toBe(0)
  expect(rows.map((row) => row.outcome)).toEqual(rows.map(() => outcome))
})
