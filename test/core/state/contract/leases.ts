import { expect, test } from 'vitest'
import { openState } from '../../../../core/state/open.ts'
import type { NewPlace } from './place.ts'

const a = { workflowId: 'recover-1', runId: 'run-a' }
const b = { workflowId: 'recover-2', runId: 'run-b' }
const name = 'recovery'
const open = async () => false
const never = async (): Promise<boolean> => {
  throw new Error('asked without need')
}

/** What all leases promise. */
export function describeLeases(newPlace: NewPlace): void {
  test('gives a claimed lease to one owner, who may take it again', async () => {
    const state = await openState(await newPlace())
    expect(await state.leases.take({ name, owner: a, isClosed: never })).toEqual({ taken: true })
    expect(await state.leases.take({ name, owner: a, isClosed: never })).toEqual({ taken: true })
    expect(await state.leases.take({ name, owner: b, isClosed: open })).toEqual({ taken: false, heldBy: a })
    expect(await state.leases.take({ name: 'customers csv', owner: b, isClosed: never })).toEqual({
      taken: true,
    })
    await state.close()
  })

  test('takes over from an owner that is closed, and asks about that owner', async () => {
    const state = await openState(await newPlace())
    await state.leases.take({ name, owner: a, isClosed: never })
    const asked: unknown[] = []
    const isClosed = async (owner: unknown) => asked.push(owner) > 0
    expect(await state.leases.take({ name, owner: b, isClosed })).toEqual({ taken: true })
    expect(asked).toEqual([a])
    expect(await state.leases.lastHolder({ name })).toEqual({ ...b, isReleased: false })
    await state.close()
  })

  test('a new start of the same workflow id is another owner', async () => {
    const state = await openState(await newPlace())
    await state.leases.take({ name, owner: a, isClosed: never })
    const again = { ...a, runId: 'another start' }
    expect(await state.leases.take({ name, owner: again, isClosed: open })).toEqual({
      taken: false,
      heldBy: a,
    })
    await state.close()
  })

  test('only the owner can give it free', async () => {
    const state = await openState(await newPlace())
    await state.leases.take({ name, owner: a, isClosed: never })
    await state.leases.release({ name, owner: b })
    expect(await state.leases.lastHolder({ name })).toEqual({ ...a, isReleased: false })
    await state.leases.release({ name, owner: a })
    expect(await state.leases.lastHolder({ name })).toEqual({ ...a, isReleased: true })
    await state.close()
  })

  test('of two that want to take over at once, one gets it', async () => {
    const state = await openState(await newPlace())
    await state.leases.take({ name, owner: a, isClosed: never })
    const c = { workflowId: 'recover-3', runId: 'run-c' }
    const isClosed = async (owner: { runId: string }) => owner.runId === a.runId
    const results = await Promise.all([b, c].map((owner) => state.leases.take({ name, owner, isClosed })))
    expect(results.filter((result) => result.taken)).toHaveLength(1)
    await state.close()
  })
}
