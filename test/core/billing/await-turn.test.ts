import { expect, onTestFinished, test } from 'vitest'
import { plans } from '../../../core/billing/resources/plans.ts'
import { html, json, page, quickBilling, startTinyService, type Answer } from './tiny-service.ts'

async function listTurns(...answers: [Answer, ...Answer[]]) {
  const service = await startTinyService(...answers)
  onTestFinished(() => service[Symbol.asyncDispose]())
  const billing = quickBilling({ baseUrl: service.baseUrl, concurrency: 1 })
  const turn = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  const events: string[] = []
  const awaitTurn = () => {
    events.push('arrived')
    arrived.resolve()
    return turn.promise
  }
  const query = { resource: plans, page: 1, pageSize: 1 }
  const list = billing.list({ ...query, awaitTurn }).then(({ records }) => {
    events.push('parsed')
    return records
  })
  return { service, billing, query, list, turn, arrived: arrived.promise, events }
}

test('a reply that awaits its turn holds up no other request', async () => {
  const { billing, query, list, turn, arrived, events } = await listTurns(
    page([{ id: 1 }]),
    page([{ id: 2 }]),
  )
  await arrived
  expect((await billing.list(query)).records).toEqual([{ id: 2 }])
  expect(events).toEqual(['arrived'])
  turn.resolve()
  expect(await list).toEqual([{ id: 1 }])
})

test('an error, a gateway’s page and what was cut off have no turn: they are requested again at once', async () => {
  const { service, list, turn, arrived, events } = await listTurns(
    json(503, { detail: 'Later.' }),
    html(200),
    json(200, ''),
    json(200, '{"count":1,"results":[{"id":'),
    json(200, '{"count":1,"results":[{"id":1}],"next":null}\r\n'),
  )
  await arrived
  expect(service.seen).toHaveLength(5)
  expect(events).toEqual(['arrived'])
  turn.resolve()
  expect(await list).toEqual([{ id: 1 }])
})

test('what turns out to be cut off only when it is parsed is requested again', async () => {
  const { service, list, turn, events } = await listTurns(
    json(200, '{"count":1,"results":[{"id":1}'),
    page([{ id: 1 }]),
  )
  turn.resolve()
  expect(await list).toEqual([{ id: 1 }])
  expect(service.seen).toHaveLength(2)
  expect(events).toEqual(['arrived', 'arrived', 'parsed'])
})
