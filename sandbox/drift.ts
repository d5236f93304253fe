import { Chance } from './data/random.ts'
import { SECOND } from './data/times.ts'
import type { Drift, DriftAmounts, ListName, Mode } from './options.ts'
import type { ChangeSource, Fields, RecordId, StoredRecord, World } from './store.ts'

export interface DriftStep extends DriftAmounts {
  resource: ListName
  mode?: Mode
  lateBySeconds?: number
}

const kinds = ['deletes', 'inserts', 'updates', 'lateCommits', 'restores'] as const
type DriftKind = (typeof kinds)[number]

const tickMs = 20
const defaultLateSeconds = 30
const cause: ChangeSource = { by: 'drift' }

/** The field that a drift update changes, visible to readers of each list. */
const updates: Record<ListName, (count: number) => Fields> = {
  customers: (count) => ({ phone: `+56 9 ${count}` }),
  subscriptions: (count) => ({ note: `cambio ${count}` }),
  plans: (count) => ({ description: `cambio ${count}` }),
  retentions: (count) => ({ biller_status: `cambio ${count}` }),
}

/** Changes lists by seeded random choices: over time, per request, or on demand. */
export function createDrifter(options: { worlds: Record<Mode, World>; now: () => number; seed: number }) {
  const { worlds, now, seed } = options
  const chance = new Chance(seed, 6_000_000_007)
  /** Fractions of changes that are due. */
  const owed = new Map<string, number>()
  let current: Drift = {}
  let changes = 0
  let timer: NodeJS.Timeout | undefined
  let tickedAt = 0

  function change(kind: DriftKind, step: DriftStep): StoredRecord | undefined {
    const collection = worlds[step.mode ?? 'live'][step.resource]
    if (kind === 'inserts') return collection.create({ cause })
    if (kind === 'lateCommits') {
      const age = Math.floor(chance.fraction() * (step.lateBySeconds ?? defaultLateSeconds) * SECOND)
      return collection.create({ cause, created: now() - age })
    }
    if (kind === 'restores') {
      const gone = collection.restorable()
      return gone.length === 0 ? undefined : collection.restore(chance.pick(gone), cause)
    }
    const records = collection.ordered()
    const record = records[chance.below(records.length)]
    if (record === undefined) return undefined
    if (kind === 'deletes') return collection.remove(record.id, cause)
    return collection.update({ id: record.id, fields: updates[step.resource](++changes), cause })
  }

  /** Changes the given numbers of records now and returns their ids by kind of change. */
  function step(amounts: DriftStep): Record<DriftKind, RecordId[]> {
    const done = kinds.map((kind) => {
      const records = Array.from({ length: amounts[kind] ?? 0 }, () => change(kind, amounts))
      return [kind, records.flatMap((record) => (record === undefined ? [] : [record.id]))]
    })
    return Object.fromEntries(done) as Record<DriftKind, RecordId[]>
  }

  /** Keeps rates constant over time: a late tick does more. */
  function tick(): void {
    const elapsed = (now() - tickedAt) / SECOND
    tickedAt += elapsed * SECOND
    for (const [name, { perSecond, ...drift }] of Object.entries(current)) {
      const due: DriftAmounts = {}
      for (const kind of kinds) {
        const sum = (owed.get(`${name} ${kind}`) ?? 0) + (perSecond?.[kind] ?? 0) * elapsed
        due[kind] = Math.floor(sum)
        owed.set(`${name} ${kind}`, sum - due[kind])
      }
      step({ resource: name as ListName, ...drift, ...due })
    }
  }

  const close = () => clearInterval(timer)

  return {
    step,
    close,
    set(drift: Drift): void {
      current = drift
      owed.clear()
      close()
      tickedAt = now()
      if (Object.values(drift).some((list) => list.perSecond !== undefined)) timer = setInterval(tick, tickMs)
    },
    afterRequest(resource: ListName): void {
      const { perRequest, ...drift } = current[resource] ?? {}
      if (perRequest !== undefined) step({ resource, ...drift, ...perRequest })
    },
  }
}
