import { Chance } from './data/random.ts'
import { SECOND } from './data/times.ts'
import type { Drift, DriftAmounts, ListName, Mode } from './options.ts'
import type { ChangeSource, Collection, Fields, RecordId, StoredRecord, World } from './store.ts'

export interface DriftStep extends DriftAmounts {
  resource: ListName
  mode?: Mode
  lateBySeconds?: number
}

const kinds = ['deletes', 'inserts', 'updates', 'lateCommits', 'restores'] as const
const TICK_MS = 20
const cause: ChangeSource = { by: 'drift' }

/** The field that a drift update changes, visible to readers of each list. */
const updates: Record<ListName, (count: number) => Fields> = {
  customers: (count) => ({ phone: `+56 9 ${count}` }),
  subscriptions: (count) => ({ note: `cambio ${count}` }),
  plans: (count) => ({ description: `cambio ${count}` }),
  retentions: (count) => ({ biller_status: `cambio ${count}` }),
}

/** Changes lists by seeded random choices: over time, per request, or on demand. */
export class Drifter {
  readonly #worlds: Record<Mode, World>
  readonly #now: () => number
  readonly #chance: Chance
  #drift: Drift
  #frozen = false
  #changes = 0
  #timer: NodeJS.Timeout | undefined
  #tickedAt = 0
  readonly #owed = new Map<string, number>()

  constructor(options: { worlds: Record<Mode, World>; now: () => number; seed: number; drift: Drift }) {
    this.#worlds = options.worlds
    this.#now = options.now
    this.#chance = new Chance(options.seed, 6_000_000_007)
    this.#drift = options.drift
    this.set(options.drift)
  }

  set(drift: Drift): void {
    this.#drift = drift
    this.#owed.clear()
    this.close()
    this.#tickedAt = this.#now()
    if (Object.values(drift).some((list) => list.perSecond !== undefined))
      this.#timer = setInterval(() => this.#tick(), TICK_MS)
  }

  /** Stops all drift, over time and per request, until unfrozen. */
  freeze(frozen: boolean): void {
    this.#frozen = frozen
    this.#tickedAt = this.#now()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  afterRequest(resource: ListName): void {
    const drift = this.#drift[resource]
    if (this.#frozen || drift?.perRequest === undefined) return
    this.step({ resource, lateBySeconds: drift.lateBySeconds ?? 30, ...drift.perRequest })
  }

  /** Changes the given numbers of records now and returns their ids by kind of change. */
  step(step: DriftStep): Record<(typeof kinds)[number], RecordId[]> {
    const collection = this.#worlds[step.mode ?? 'live'][step.resource]
    const done = { deletes: [], inserts: [], updates: [], lateCommits: [], restores: [] } as Record<
      (typeof kinds)[number],
      RecordId[]
    >
    for (const kind of kinds) {
      for (let count = 0; count < (step[kind] ?? 0); count++) {
        const record = this.#change(kind, collection, step)
        if (record !== undefined) done[kind].push(record.id)
      }
    }
    return done
  }

  #change(kind: (typeof kinds)[number], collection: Collection, step: DriftStep): StoredRecord | undefined {
    if (kind === 'inserts') return collection.create({ cause })
    if (kind === 'lateCommits') {
      const age = Math.floor(this.#chance.fraction() * (step.lateBySeconds ?? 30) * SECOND)
      return collection.create({ cause, created: this.#now() - age })
    }
    if (kind === 'restores') {
      const gone = collection.restorable()
      return gone.length === 0 ? undefined : collection.restore(this.#chance.pick(gone), cause)
    }
    const records = collection.view.ordered('created')
    const record = records[this.#chance.below(records.length)]
    if (record === undefined) return undefined
    if (kind === 'deletes') return collection.remove(record.id, cause)
    return collection.update({ id: record.id, fields: updates[step.resource](++this.#changes), cause })
  }

  /** Keeps rates constant over time: a late tick does more. */
  #tick(): void {
    const elapsed = (this.#now() - this.#tickedAt) / SECOND
    this.#tickedAt += elapsed * SECOND
    if (this.#frozen) return
    for (const [name, drift] of Object.entries(this.#drift)) {
      const resource = name as ListName
      const due: DriftAmounts = {}
      for (const kind of kinds) {
        const owed = (this.#owed.get(`${name} ${kind}`) ?? 0) + (drift.perSecond?.[kind] ?? 0) * elapsed
        due[kind] = Math.floor(owed)
        this.#owed.set(`${name} ${kind}`, owed - due[kind])
      }
      this.step({ resource, lateBySeconds: drift.lateBySeconds ?? 30, ...due })
    }
  }
}
