import { Client, Connection } from '@temporalio/client'
import { MockActivityEnvironment } from '@temporalio/testing'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createSteps, type StepContext } from '../../activities/step.ts'
import { StateAwayError } from '../../core/state/errors.ts'
import { InvalidInput } from '../../core/runs/errors.ts'
import { cached } from '../../core/storage/cached.ts'

const identity = { workspace: 'acc_1', baseUrl: 'http://127.0.0.1', mode: 'test', store: 's' } as const
const open = (info = {}) =>
  new MockActivityEnvironment(info, { client: new Client({ connection: Connection.lazy() }) })
const { step } = createSteps({
  dataDir: '/nowhere',
  shared: cached('/nowhere'),
  outDirs: [],
  identity,
  state: {} as never,
  searchAttributes: () => Promise.resolve([]),
})

/** Runs a step as Temporal does, after an attempt with this last heartbeat; gives the heartbeats of this one. */
async function heartbeatsOf(
  work: (context: StepContext) => Promise<void>,
  heartbeatDetails?: unknown,
): Promise<unknown[]> {
  const environment = open({ heartbeatDetails })
  const heartbeats: unknown[] = []
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details))
  await environment.run(step(work))
  return heartbeats
}

test('a step that reports nothing repeats the last heartbeat, so that a third attempt still has it', async () => {
  expect(await heartbeatsOf(async () => {}, { claims: 7 })).toEqual([{ claims: 7 }])
})

test('a step heartbeats when it begins, at each report and every second with the details as they are then', async () => {
  const heartbeats = await heartbeatsOf(async ({ report }) => {
    let rows = 0
    report(() => ({ rows }))
    rows = 5
    await wait(1_300)
  })
  expect(heartbeats).toEqual([undefined, { rows: 0 }, { rows: 5 }])
})

test('a step that fails heartbeats no more', async () => {
  const environment = open()
  const heartbeats: unknown[] = []
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details))
  const failing = step(async () => {
    throw new Error('no')
  })
  await expect(environment.run(failing)).rejects.toThrow('no')
  await wait(1_300)
  expect(heartbeats).toHaveLength(1)
})

test('an error that a retry does not fix ends the run with its own sentence, and every other is retried', async () => {
  const environment = open()
  const fail = (error: Error) =>
    step(async () => {
      throw error
    })
  await expect(environment.run(fail(new InvalidInput('no such list')))).rejects.toMatchObject({
    message: 'no such list',
    type: 'InvalidInput',
    nonRetryable: true,
  })
  await expect(environment.run(fail(new Error('away')))).rejects.toMatchObject({ nonRetryable: false })
})

test('a step of a stopped run hears of it by its signal', async () => {
  const environment = open()
  const stopped = environment.run(
    step(async ({ signal }: StepContext) => {
      environment.cancel()
      signal.throwIfAborted()
    }),
  )
  await expect(stopped).rejects.toMatchObject({ name: 'CancelledFailure' })
})

/** A step's try to take its lease while the state is away for so many questions; gives how often it asked. */
async function takeLeaseAfter(failures: number, shared: object | undefined): Promise<number> {
  let asked = 0
  const take = async () => {
    asked += 1
    if (asked <= failures) throw new StateAwayError({ place: 'state', cause: new Error('ECONNREFUSED') })
    return { taken: true }
  }
  const searchAttributes = () => Promise.resolve([])
  const folder = { dataDir: '/nowhere', outDirs: [], identity, searchAttributes }
  const steps = createSteps({
    ...folder,
    shared: cached('/nowhere'),
    state: { leases: { take }, shared } as never,
  })
  await open()
    .run(steps.step(({ takeLeases }) => takeLeases(['recovery'])))
    .catch(() => undefined)
  return asked
}

test('a step that begins while PostgreSQL is away waits for it to take its leases, and one whose state.db is locked leaves that to Temporal', async () => {
  expect(await takeLeaseAfter(3, {})).toBe(4)
  expect(await takeLeaseAfter(3, undefined)).toBe(1)
})
