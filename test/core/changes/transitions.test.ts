import { expect, test } from 'vitest'
import { type Trigger, transition, recordAnswer, transitions } from '../../../core/changes/transitions.ts'
import { outcomes } from '../../../core/changes/outcomes.ts'
import { changeStates } from '../../../core/state/schema.ts'
import { temporaryState } from '../state/temporary-folder.ts'
import { senderOf } from '../state/sender-of.ts'

const causes: Exclude<Trigger, 'claim'>[] = [
  ...(['answer', 'notSent', 'noAnswer', 'interruption', 'check'] as const),
  ...(['lookup', 'repeat', 'restore', 'end', 'person'] as const),
]

test('a change moves as the table says and in no other way', async () => {
  const { ledger } = await temporaryState()
  const space = { workspace: 'acc', mode: 'live', kind: 'create-addon', run: 'r', repeats: 'never' } as const
  await ledger.stage({ ...space, changes: [{ row: 1, key: 'k', body: '{}' }] })
  const row = await ledger.row({ run: 'r', row: 1 })
  if (row === undefined) throw new Error('not staged')
  const made: string[] = []
  for (const from of changeStates)
    for (const to of changeStates)
      for (const by of causes) {
        await ledger.move({ id: row.id, from: changeStates, patch: { state: from } })
        const moved = await transition({ ledger, row, to, by, outcome: 'created' }).catch(() => false)
        if (moved) made.push(`${from} ${to} ${by}`)
      }
  const allowed = transitions
    .filter(({ by }) => by !== 'claim')
    .map(({ from, to, by }) => `${from} ${to} ${by}`)
  expect(made.toSorted()).toEqual(allowed.toSorted())
})

async function stageOne() {
  const { ledger } = await temporaryState()
  const space = { workspace: 'acc', mode: 'live', kind: 'create-addon', repeats: 'never' } as const
  const stage = (run: string) => ledger.stage({ ...space, run, changes: [{ row: 1, key: 'k', body: '{}' }] })
  await stage('r')
  const staged = await ledger.row({ run: 'r', row: 1 })
  const sender = await senderOf(ledger, 'r')
  const first = await ledger.claim({ sender, id: staged?.id ?? 0, sends: 0, at: 1 })
  if (first === undefined) throw new Error('not claimed')
  const answer = (answerId: string) =>
    recordAnswer({ ledger, row: first, outcome: 'created', answerId, answer: null, at: 9 })
  const now = () => ledger.byId({ id: first.id })
  return { ledger, stage, first, answer, now }
}

test('an answer wins however late it comes, also when the change is being sent once more', async () => {
  for (const state of ['sending', 'staged', 'unknown', 'parked', 'rejected', 'dropped'] as const) {
    const { ledger, first, answer, now } = await stageOne()
    await ledger.move({ id: first.id, from: ['sending'], patch: { state, sends: 2 } })
    await answer('17')
    expect(await now()).toMatchObject({ state: 'done', answerId: '17' })
  }
})

test('a second answer with another id says that it was done twice', async () => {
  const { answer, now } = await stageOne()
  await answer('17')
  await answer('17')
  expect(await now()).toMatchObject({ outcome: 'created', error: null })
  const twice = 'the service has done it more than once: as 17 and as 18'
  expect(await answer('18')).toEqual(['17', '18'])
  expect(await now()).toMatchObject({ outcome: 'doubled', answerId: '17', error: twice })
  expect(await answer('18')).toEqual(['17', '18'])
  // `as 1` is not one of them, although it begins as they do.
  expect(await answer('1')).toEqual(['17', '18', '1'])
  expect(await now()).toMatchObject({ outcome: 'doubled', answerId: '17', error: `${twice} and as 1` })
  expect(await answer('17')).toBeUndefined()
})

test('a late answer under an id that a lookup has found as the second one names no third', async () => {
  const { ledger, first, answer, now } = await stageOne()
  const found = {
    answerId: '1',
    otherIds: '["2"]',
    outcome: 'doubled',
    error: 'the service has it as 1 and 2',
  }
  await ledger.move({ id: first.id, from: ['sending'], patch: { state: 'done', ...found } })
  expect(await answer('2')).toEqual(['1', '2'])
  expect(await now()).toMatchObject(found)
})

test('an answer that a person overtakes by saying that the first one was wrong is the first one', async () => {
  const { ledger, first, answer, now } = await stageOne()
  await answer('17')
  const byId = ledger.byId.bind(ledger)
  ledger.byId = async (options) => {
    const seen = await byId(options)
    await ledger.move({ id: first.id, from: ['done'], patch: { state: 'staged', answerId: null } })
    return seen
  }
  expect(await answer('18')).toBeUndefined()
  ledger.byId = byId
  expect(await now()).toMatchObject({ state: 'done', outcome: 'created', answerId: '18' })
})

test('an answer to a row that was dropped and taken over by another run is recorded for a person', async () => {
  const { ledger, stage, first, answer, now } = await stageOne()
  await ledger.move({ id: first.id, from: ['sending'], patch: { state: 'dropped' } })
  expect((await stage('other')).staged).toBe(1)
  await answer('17')
  expect(await now()).toMatchObject({ state: 'dropped', answerId: '17' })
  expect((await now())?.error).toContain('another run took its key')
})

test('a change that was sent is sent again only after its sender says that nothing left, a lookup, a harmless repeat or a decision of a person', () => {
  const back = transitions.filter(({ to, from }) => to === 'staged' && from !== 'sending')
  expect(back.map(({ by }) => by)).toEqual(['notSent', 'lookup', 'repeat', 'person', 'person'])
  const fromSending = transitions.filter(({ from, to }) => from === 'sending' && to === 'staged')
  expect(fromSending.map(({ by }) => by)).toEqual(['notSent'])
})

test('every outcome has words for people', () => {
  for (const words of Object.values(outcomes)) expect(words.length).toBeGreaterThan(10)
})
