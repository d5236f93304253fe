import { describe, expect, test } from 'vitest'
import { Forbidden, NotFound, Refused, ServiceFault } from '../../../core/billing/errors.ts'
import { type IdState, type IdStep, readById, toIdOutcome } from '../../../core/reading/read-by-id.ts'
import type { SourceRecord } from '../../../core/reading/record.ts'

type Answer = SourceRecord | Error | ((time: number) => SourceRecord | Error)

const at = (id: string) => ({ method: 'GET', path: `/creditnotes/${id}/` })
const absent = (id: string) => new NotFound({ ...at(id), status: 404, byService: true })
const away = (id: string) => new ServiceFault({ ...at(id), status: 500 })

/** Reads ids from a service that answers for some of them as said, and for the others with their documents. */
function openRead(options: {
  ids: string[]
  answers?: Record<string, Answer>
  concurrency?: number
  state?: IdState
}) {
  const { ids, answers = {}, concurrency = 3, state } = options
  const asked: string[] = []
  const flying = { now: 0, most: 0 }
  const read = readById({
    resource: 'creditnotes',
    ids,
    async fetchDocument(id) {
      asked.push(id)
      flying.now += 1
      flying.most = Math.max(flying.most, flying.now)
      // Later ids are answered sooner.
      for (let turn = 0; turn < ids.length - ids.indexOf(id); turn += 1) await Promise.resolve()
      flying.now -= 1
      const said = answers[id] ?? { id: Number(id), test_mode: false }
      const answer = typeof said === 'function' ? said(asked.filter((one) => one === id).length) : said
      if (answer instanceof Error) throw answer
      const { age: ageMs, ...record } = answer as { age?: number }
      return { record, ageMs }
    },
    testMode: false,
    concurrency,
    now: () => 0,
    state,
  })
  return { read, asked, flying }
}

async function toEnd(read: AsyncGenerator<IdStep, void>) {
  const steps = await Array.fromAsync(read)
  return { steps, outcome: toIdOutcome(steps.at(-1)!.state, { resource: 'creditnotes', notes: [] }) }
}

const tenIds = Array.from({ length: 10 }, (_, index) => String(501 + index))

describe('documents by id', () => {
  test('come in the order asked for, with so many in flight and no more', async () => {
    const { read, flying } = openRead({ ids: tenIds })
    const { steps, outcome } = await toEnd(read)
    expect(steps.map(({ records }) => String(records[0]!['id']))).toEqual(tenIds)
    expect(flying.most).toBe(3)
    expect(outcome).toMatchObject({ verdict: 'proven', reasons: [], asked: 10, missing: { rows: 0 } })
  })

  test('that do not exist are named, and the fetch is proven', async () => {
    const { read } = openRead({ ids: tenIds, answers: { '503': absent('503'), '510': absent('510') } })
    const { steps, outcome } = await toEnd(read)
    expect(outcome).toMatchObject({ verdict: 'proven', missing: { rows: 2, first: ['503', '510'] } })
    expect(steps.at(-1)?.state.counts).toEqual({ requests: 10, records: 8, missing: 2, open: 0 })
  })

  test.each<[string, Answer, string]>([
    [
      'refused',
      new Refused({ ...at('503'), status: 400, byService: true, messages: ['no number'] }),
      'no number',
    ],
    ['answered with another document', { id: 777 }, 'the document 777'],
    ['answered with a document without an id', { number: 1 }, 'without an id'],
    ['never answered while others are', away('503'), '500'],
    ['answered by a cache with what was before the fetch', { id: 503, age: 60_000 }, 'a cache answers'],
    [
      'missing by what a cache had before the fetch',
      new NotFound({ ...at('503'), status: 404, byService: true, ageMs: 60_000 }),
      'a cache answers',
    ],
    ['answered by a gateway alone', new NotFound({ ...at('503'), status: 404, byService: false }), '404'],
    ['refused by a gateway alone', new Refused({ ...at('503'), status: 400, byService: false }), '400'],
  ])('are not proven where one is %s, and the others come', async (_, answer, says) => {
    const { read } = openRead({ ids: tenIds, answers: { '503': answer } })
    const { steps, outcome } = await toEnd(read)
    expect(outcome).toMatchObject({ verdict: 'unproven', missing: { rows: 0 } })
    expect(outcome.reasons).toEqual([expect.stringContaining('503')])
    expect(outcome.reasons[0]).toContain(says)
    expect(outcome.scope.join(' ')).not.toMatch(/^Each of/)
    expect(outcome.scope.join(' ')).toContain('Could not be read: 1.')
    expect(steps.flatMap(({ records }) => records)).toHaveLength(9)
  })

  test('are named up to twenty where many are refused, and the rest is counted', async () => {
    const refused = new Refused({ ...at('x'), status: 400, byService: true, messages: ['no number'] })
    const ids = Array.from({ length: 25 }, (_, index) => String(501 + index))
    const answers = Object.fromEntries(ids.map((id) => [id, refused]))
    const { reasons } = (await toEnd(openRead({ ids, answers }).read)).outcome
    expect(reasons).toHaveLength(21)
    expect(reasons.at(-1)).toBe('5 more could not be read; rejected.jsonl lists all of them.')
  })

  test('are looked at once more where one fails while others are answered', async () => {
    const answer = (time: number) => (time === 1 ? away('501') : { id: 501 })
    const { read, asked } = openRead({ ids: tenIds, answers: { '501': answer } })
    expect((await toEnd(read)).outcome.verdict).toBe('proven')
    expect(asked.filter((id) => id === '501')).toHaveLength(2)
  })

  test('are asked for again where a cache answers with what was before the fetch', async () => {
    const answer = (time: number) => ({ id: 501, ...(time < 3 && { age: 60_000 }) })
    const { read, asked } = openRead({ ids: tenIds, answers: { '501': answer } })
    expect((await toEnd(read)).outcome).toMatchObject({ verdict: 'proven', requests: 12 })
    expect(asked.filter((id) => id === '501')).toHaveLength(3)
  })

  test('wait for a service that is away, and continue behind what was settled', async () => {
    let isAway = true
    const moody = (id: string) => () => (isAway ? away(id) : { id: Number(id) })
    const answers = Object.fromEntries(tenIds.slice(4).map((id) => [id, moody(id)]))
    // An id that was answered for before is not any more either.
    const first = openRead({
      ids: tenIds,
      answers: { ...answers, '504': (time) => (time === 1 ? { id: 504 } : away('504')) },
    })
    const steps: IdStep[] = []
    await expect(
      (async () => {
        for await (const step of first.read) steps.push(step)
      })(),
    ).rejects.toThrow('the service failed')
    expect(steps).toHaveLength(4)

    isAway = false
    const second = openRead({ ids: tenIds, answers, state: steps.at(-1)!.state })
    const { outcome } = await toEnd(second.read)
    expect(outcome).toMatchObject({ verdict: 'proven', asked: 10 })
    expect(second.asked).toEqual(tenIds.slice(4))
  })

  test.each([
    ['a token without rights', new Forbidden({ ...at('503'), status: 403, byService: true }), 'not allowed'],
    ['data of the other mode', { id: 503, test_mode: true }, 'is test data'],
  ])('end at once at %s', async (_, answer, says) => {
    const { read } = openRead({ ids: tenIds, answers: { '503': answer } })
    await expect(toEnd(read)).rejects.toThrow(says)
  })

  test('keep a state that later steps do not change', async () => {
    const { read } = openRead({ ids: tenIds, answers: { '501': absent('501') } })
    const { steps } = await toEnd(read)
    expect(steps.map(({ state }) => state.processed)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(steps[0]?.state.counts).toMatchObject({ records: 0, missing: 1, open: 0 })
  })
})
