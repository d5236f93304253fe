/**
 * Random events through the real sender, settling and store, against a service whose every effect is counted:
 * claims, answers, late answers, lost and refused requests, crashes, looks, a person's word, stops and restarts.
 */
import * as fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { leaseOf } from '../state/sender-of.ts'
import { type Billing, createBilling } from '../../../core/billing/client.ts'
import { LostReply, Refused, Unreachable } from '../../../core/billing/errors.ts'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { summarize } from '../../../core/changes/report.ts'
import { resolveChange } from '../../../core/changes/resolve.ts'
import { sendOne } from '../../../core/changes/send/send-one.ts'
import { runSegment } from '../../../core/changes/send/segment.ts'
import type { FencingToken } from '../../../core/state/ledger/claims.ts'
import { type State, openState } from '../../../core/state/open.ts'
import { attempts, stageChanges, workspace } from './engine.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

const seed = 42
const rowCount = 4
const run = 'run-1'
const request = { method: 'POST', path: '/things/' }

/** A request that has left. It takes effect whether or not anything still waits for its answer. */
interface OnTheWire {
  row: number
  effect: 'open' | 'done' | 'none'
  answered: boolean
  id: string
  answer: (id: string) => void
  fail: (error: unknown) => void
  /** The end of the sending as the sender sees it. */
  ended: Promise<unknown>
}

type EventName =
  | 'send'
  | 'answer'
  | 'lose'
  | 'refuse'
  | 'notSent'
  | 'takeOver'
  | 'crash'
  | 'settle'
  | 'person'
  | 'restage'
const eventNames: EventName[] = [
  ...(['send', 'send', 'send', 'answer', 'answer', 'lose', 'refuse', 'notSent'] as const),
  ...(['takeOver', 'crash', 'settle', 'settle', 'settle', 'person', 'restage'] as const),
]
interface RandomEvent {
  name: EventName
  pick: number
  lands: boolean
}
const randomEvent: fc.Arbitrary<RandomEvent> = fc.record({
  name: fc.constantFrom(...eventNames),
  pick: fc.nat({ max: 1_000 }),
  lands: fc.boolean(),
})

class World {
  readonly made = new Map<number, string[]>()
  readonly kind: ChangeKind
  #wire: OnTheWire[] = []
  #state: State
  readonly #folder: string
  readonly #billing: Billing
  #ids = 0
  #sender: FencingToken | undefined
  #now = 1_000_000
  /** Hears of the next request that leaves. */
  #onLeft = () => {}

  constructor({
    folder,
    state,
    lookable,
    billing,
  }: {
    folder: string
    state: State
    lookable: boolean
    billing: Billing
  }) {
    this.#folder = folder
    this.#state = state
    this.#billing = billing
    this.kind = this.#createKind(lookable)
  }

  get ledger() {
    return this.#state.ledger
  }

  close = () => this.#state.close()

  #createKind(lookable: boolean): ChangeKind {
    return {
      name: 'create-retention',
      keyOf: (body) => String(body['row']),
      repeats: 'never',
      answered: 'created',
      whenUnknown: () => (lookable ? 'lookUp' : 'park'),
      lookUp: async ({ body }) => {
        const id = this.made.get(Number(body['row']))?.[0]
        return id === undefined ? { result: 'absent' } : { result: 'done', id, outcome: 'found' }
      },
      send: async ({ body, options }) => {
        await options.beforeSend?.()
        const row = Number(body['row'])
        this.#checkMaySend(row)
        const { promise, resolve, reject } = Promise.withResolvers<{ id: string }>()
        this.#wire.push({
          row,
          effect: 'open',
          answered: false,
          id: String((this.#ids += 1)),
          answer: (id) => resolve({ id }),
          fail: reject,
          ended: Promise.resolve(),
        })
        this.#onLeft()
        return await promise
      },
      traitsOf: () => ({ signature: '', lines: 0, amount: '' }),
    }
  }

  /** The promise of the whole room: nothing of this change is there, or can still come to be. */
  #checkMaySend(row: number) {
    expect({ row, made: this.made.get(row) ?? [] }).toEqual({ row, made: [] })
    const open = this.#wire.filter((sent) => sent.row === row && sent.effect === 'open')
    expect({ row, open: open.length }).toEqual({ row, open: 0 })
  }

  #take(sent: OnTheWire, done: boolean) {
    if (sent.effect !== 'open') return
    sent.effect = done ? 'done' : 'none'
    if (done) this.made.set(sent.row, [...(this.made.get(sent.row) ?? []), sent.id])
  }

  #pick(candidates: OnTheWire[], at: number): OnTheWire | undefined {
    return candidates[at % Math.max(1, candidates.length)]
  }

  async apply(event: RandomEvent): Promise<void> {
    await this[`_${event.name}`](event)
    await this.#checkCounts()
  }

  async _send({ pick }: RandomEvent) {
    const due = await this.ledger.due({ run, at: this.#now, limit: rowCount })
    const row = due[pick % Math.max(1, due.length)]
    if (row === undefined) return
    const before = this.#wire.length
    const left = new Promise<void>((resolve) => (this.#onLeft = resolve))
    const ended = sendOne({
      ledger: { ...this.ledger, now: () => (this.#now += 1) },
      sender: (this.#sender ??= await this.#becomeSender()),
      kind: this.kind,
      billing: this.#billing,
      row,
      stop: new AbortController().signal,
    })
    await Promise.race([left, ended])
    expect(this.#wire.length).toBe(before + 1)
    const sent = this.#wire.at(-1)
    if (sent !== undefined) sent.ended = ended
  }

  get #unanswered() {
    return this.#wire.filter((sent) => !sent.answered)
  }

  async #end(sent: OnTheWire, error?: unknown) {
    sent.answered = true
    if (error === undefined) sent.answer(sent.id)
    else sent.fail(error)
    await sent.ended
  }

  /** Perhaps late: the change may be unknown or parked by now. */
  async _answer({ pick }: RandomEvent) {
    const sent = this.#pick(
      this.#unanswered.filter(({ effect }) => effect !== 'none'),
      pick,
    )
    if (sent === undefined) return
    this.#take(sent, true)
    await this.#end(sent)
    const row = await this.ledger.row({ run, row: sent.row })
    expect(row).toMatchObject({ state: 'done', answerId: sent.id })
  }

  async _lose({ pick, lands }: RandomEvent) {
    const sent = this.#pick(this.#unanswered, pick)
    if (sent === undefined) return
    if (lands) this.#take(sent, true)
    await this.#end(sent, new LostReply({ ...request, why: 'ECONNRESET' }))
  }

  async _refuse({ pick }: RandomEvent) {
    const sent = this.#pick(
      this.#unanswered.filter(({ effect }) => effect === 'open'),
      pick,
    )
    if (sent === undefined) return
    this.#take(sent, false)
    await this.#end(sent, new Refused({ ...request, byService: true, status: 400, messages: ['No.'] }))
  }

  async _notSent({ pick }: RandomEvent) {
    const sent = this.#pick(
      this.#unanswered.filter(({ effect }) => effect === 'open'),
      pick,
    )
    if (sent === undefined) return
    this.#take(sent, false)
    await this.#end(sent, new Unreachable({ ...request, why: 'ECONNREFUSED' }))
  }

  /** A new attempt finds what an earlier one was sending; that one may still get its answers. */
  async _takeOver() {
    this.#sender = await this.#becomeSender()
  }

  #becomeSender(): Promise<FencingToken> {
    const now = () => this.#now
    const interrupted = (at: number) =>
      ({ state: 'unknown', outcome: 'interrupted', unknownSince: at }) as const
    return this.ledger.becomeSender({ run, lease: leaseOf(run), now, interrupted })
  }

  /** The process ends: nobody waits for the answers any more, and the requests end as they like. */
  async _crash({ lands }: RandomEvent) {
    for (const sent of this.#unanswered) {
      sent.answered = true
      if (lands) this.#take(sent, true)
    }
    await this.#state.close()
    this.#state = await openState({ folder: this.#folder })
    await this._takeOver()
  }

  /** A settle delay is over: what is to take effect does so before the first look, or at the latest the second. */
  async _settle({ lands }: RandomEvent) {
    for (const sent of this.#wire) {
      const row = await this.ledger.row({ run, row: sent.row })
      const isLate = row?.lookups === 0 && lands && this.kind.whenUnknown({}) === 'lookUp'
      if (row?.state === 'unknown' && !isLate) this.#take(sent, lands)
    }
    this.#now += 1_000_000
    const sender = (this.#sender ??= await this.#becomeSender())
    await runSegment({
      ledger: { ...this.ledger, now: () => this.#now },
      run,
      kind: this.kind,
      billing: this.#billing,
      settleMs: 100_000,
      attempts,
      limits: { concurrency: 2 },
      canarySize: { size: 0 },
      breakers: {},
      lookupsOnly: true,
      sender,
      ms: 60_000,
      signal: new AbortController().signal,
    })
  }

  /** A person looks and says the truth, when nothing of it can come any more. */
  async _person({ pick, lands }: RandomEvent) {
    const parked = await this.ledger.page({ run, state: 'parked', limit: rowCount })
    const row = parked[pick % Math.max(1, parked.length)]
    if (row === undefined) return
    for (const sent of this.#wire.filter((sent) => sent.row === row.row)) this.#take(sent, lands)
    const id = this.made.get(row.row)?.[0]
    const decision =
      id !== undefined ? { exists: id } : pick % 2 === 0 ? { absent: true as const } : { drop: true as const }
    await resolveChange({
      ledger: this.ledger,
      billing: this.#billing,
      kinds: { [this.kind.name]: this.kind },
      run,
      row: row.row,
      decision,
      by: 'Ana',
      why: 'looked',
    })
  }

  /** The same start again, and another run with the same rows: a key is held unless it is rejected or dropped. */
  async _restage() {
    expect(await this.stage(run)).toEqual({ staged: 0, held: [] })
    const rows = await this.ledger.page({ run, limit: rowCount })
    const keys = rows.map(({ key }) => key)
    const holders = await this.ledger.holders({ workspace, mode: 'live', kind: this.kind.name, keys })
    const holding = rows.filter(({ state }) => state !== 'rejected' && state !== 'dropped')
    expect(new Set(holders.map(({ id }) => id))).toEqual(new Set(holding.map(({ id }) => id)))
  }

  stage(name: string) {
    return stageChanges({
      ledger: this.ledger,
      run: name,
      kind: this.kind,
      changes: Array.from({ length: rowCount }, (_, index) => ({ row: index + 1, body: { row: index + 1 } })),
    })
  }

  async #checkCounts() {
    const { counts } = await summarize({ ledger: this.ledger, run })
    expect(Object.values(counts).reduce((sum, number) => sum + number, 0)).toBe(rowCount)
    for (const ids of this.made.values()) expect(ids).toHaveLength(1)
  }
}

for (const lookable of [true, false])
  test(
    `a change that ${lookable ? 'can' : 'can not'} be looked up is made at most once, whatever happens (seed ${seed})`,
    { timeout: 240_000 },
    async () => {
      const outcomes = new Map<string, number>()
      const billing = createBilling({
        baseUrl: 'http://127.0.0.1:9',
        workspace,
        testMode: false,
        token: async () => 'none',
      })
      const property = fc.asyncProperty(
        fc.array(randomEvent, { minLength: 40, maxLength: 80 }),
        async (events) => {
          const folder = await temporaryFolder()
          const world = new World({ folder, state: await openState({ folder }), lookable, billing })
          await world.stage(run)
          for (const event of events) await world.apply(event)
          for await (const { state, outcome } of world.ledger.rows({ run })) {
            const name = `${state} ${outcome ?? ''}`
            outcomes.set(name, (outcomes.get(name) ?? 0) + 1)
          }
          await world.close()
        },
      )
      await fc.assert(property, { seed, numRuns: 30, endOnFailure: true })
      console.log(Object.fromEntries(outcomes))
      onTestFinished(() => outcomes.clear())
      // The events reach far: all ends that such a change can come to were met.
      const ends = lookable
        ? ['done created', 'done found', 'rejected refused', 'staged absent']
        : ['done created', 'parked cannotLookUp', 'done resolved', 'dropped dropped']
      for (const end of ends) expect(outcomes.has(end) ? end : `no ${end}`).toBe(end)
    },
  )
