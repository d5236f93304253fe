import { expect, test } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import type { Billing } from '../../../core/billing/client.ts'
import { clientOf, retentionRows, startEngine, startSandbox } from './engine.ts'

/** A restored run of which nothing is known to be done, in a workspace that has retentions of its own. */
async function restoredRun({ listed, blind = false }: { listed: number; blind?: boolean }) {
  const sandbox = await startSandbox({ counts: { retentions: listed } })
  const service = clientOf(sandbox)
  const list: Billing['list'] = (query) =>
    service.list(blind && query.filters ? { ...query, filters: { number: '999999' } } : query)
  const billing = { ...service, list }
  const engine = await startEngine({ kind: changeKinds['create-retention'], sandbox, billing })
  await engine.stage(retentionRows(6))
  expect(
    await engine.ledger.markRestored({
      at: Date.now(),
      bounded: { kinds: ['none'], sends: 1 },
      forgotten: 0,
    }),
  ).toEqual(new Map([[engine.run, 6]]))
  const finish = async () => {
    await engine.finish()
    const posts = sandbox.control.requests().filter(({ method }) => method === 'POST')
    return { posts: posts.length, rows: await engine.rows() }
  }
  return { finish }
}

test('restored retentions that are absent are sent once, because the lookup finds a record that the list shows', async () => {
  const { posts, rows } = await (await restoredRun({ listed: 3 })).finish()
  expect(posts).toBe(6)
  expect(rows.map(({ state }) => state)).toEqual(Array.from({ length: 6 }, () => 'done'))
})

test.each([
  ['the list shows no record', { listed: 0 }, 'noControl'],
  ['the look-up finds nothing at all', { listed: 3, blind: true }, 'controlFailed'],
] as const)('restored retentions are parked where %s', async (_, service, outcome) => {
  const { posts, rows } = await (await restoredRun(service)).finish()
  expect(posts).toBe(0)
  expect(rows.map((row) => row.outcome)).toEqual(rows.map(() => outcome))
})
