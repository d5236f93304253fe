import { expect, test } from 'vitest'
import { openState } from '../../../../core/state/open.ts'
import { senderOf } from '../sender-of.ts'
import { describeLeases } from './leases.ts'
import { describeLedger } from './ledger.ts'
import { describeNotes } from './notes.ts'
import type { NewPlace } from './place.ts'
import { describePublications } from './publications.ts'

/** What every state promises, in a file or on PostgreSQL. */
export function describeState(newPlace: NewPlace): void {
  describeLedger(newPlace)
  describeLeases(newPlace)
  describePublications(newPlace)
  describeNotes(newPlace)

  test('keeps its id and its rows from one opening to the next', async () => {
    const place = await newPlace()
    const first = await openState(place)
    await first.ledger.stage(stageOne)
    await first.close()
    const second = await openState(place)
    expect(second.storeId).toBe(first.storeId)
    expect(first.storeId).toMatch(/^[0-9a-f-]{36}$/)
    expect(await second.ledger.row({ run: 'r', row: 1 })).toMatchObject({ key: 'a', state: 'staged' })
    await second.close()
  })

  test('a write is on the disk when its promise resolves: a reader sees it while the writer works, and writes nothing itself', async () => {
    const place = await newPlace()
    const writer = await openState(place)
    const reader = await openState({ ...place, readOnly: true })
    await writer.ledger.stage(stageOne)
    expect(await reader.ledger.row({ run: 'r', row: 1 })).toMatchObject({ state: 'staged' })
    expect(reader.storeId).toBe(writer.storeId)
    const { id } = (await reader.ledger.row({ run: 'r', row: 1 }))!
    const sender = await senderOf(writer.ledger, 'r')
    await writer.ledger.claim({ sender, id, sends: 0, at: 1 })
    expect(await reader.ledger.row({ run: 'r', row: 1 })).toMatchObject({ state: 'sending' })
    await expect(reader.ledger.claim({ sender, id, sends: 1, at: 2 })).rejects.toMatchObject({
      name: 'StateReadOnlyError',
    })
    const owner = { workflowId: 'w', runId: 'r' }
    const take = reader.leases.take({ name: 'n', owner, isClosed: async () => false })
    await expect(take).rejects.toMatchObject({ name: 'StateReadOnlyError' })
    await reader.close()
    await writer.close()
  })
}

const stageOne = {
  workspace: 'acc_1',
  mode: 'live',
  kind: 'create-addon',
  run: 'r',
  repeats: 'never',
  changes: [{ row: 1, key: 'a', body: '{}' }],
} as const
