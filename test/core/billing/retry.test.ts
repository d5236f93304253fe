import { expect, it } from 'vitest'
import { plans } from '../../../core/billing/resources/catalog.ts'
import { fullJitter } from '../../../core/billing/calls.ts'
import { html, json, page, quickBilling, startTinyService } from './tiny-service.ts'

it.each([
  ['an empty 408', json(408, '')],
  ['a gateway’s page of 408', html(408)],
])('a read continues after %s: a gateway waited too long for a slow machine', async (_, answer) => {
  await using service = await startTinyService(answer, page([{ id: 1 }]))
  const billing = quickBilling({ baseUrl: service.baseUrl })
  const { records } = await billing.list({ resource: plans, page: 1, pageSize: 1 })
  expect(records).toHaveLength(1)
  expect(service.seen).toHaveLength(2)
})

it('waits up to 1, 2, 4, 8, 16 and then 30 seconds, anywhere from nothing on', () => {
  const waits = (random: number) => [1, 2, 3, 4, 5, 6, 7].map((attempt) => fullJitter(attempt, () => random))
  expect(waits(1)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  expect(waits(0)).toEqual([0, 0, 0, 0, 0, 0, 0])
})
