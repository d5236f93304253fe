import { type Audit, createAudit } from './audit.ts'
import {
  bareGenerator,
  cancellationGenerator,
  creditNoteGenerator,
  customerGenerator,
  planGenerator,
  retentionGenerator,
  subscriptionGenerator,
} from './data/generators.ts'
import { createHistory } from './data/history.ts'
import { Chance, mix } from './data/random.ts'
import { SECOND } from './data/times.ts'
import { createDrifter } from './drift.ts'
import { createFaultPlan, type Struck } from './faults.ts'
import {
  type Mode,
  type ResourceName,
  resourceNames,
  type SandboxOptions,
  type Settings,
  type Ties,
  toSettings,
} from './options.ts'
import { type ChangeSource, createCollection, type RecordGenerator, type World } from './store.ts'

/** The state of the stand-in; `settings` and `tokens` may change while it serves. */
export type Service = ReturnType<typeof createService>

/** The arguments of an operation. */
export interface Call {
  service: Service
  mode: Mode
  world: World
  /** The id in the path. */
  id: string
  /** The requested path. */
  path: string
  query: URLSearchParams
  /** Scheme and host that the client used. */
  base: string
  body: unknown
  struck: Struck
  cause: ChangeSource
}

export function createService(options: SandboxOptions) {
  const settings = toSettings(options)
  const { seed } = settings
  const clock = createClock(settings.clockSkewSeconds)
  const { now, nowMs } = clock
  const audit = createAudit(settings.audit)
  const worlds = {
    live: createWorld({ settings, mode: 'live', now, audit }),
    test: createWorld({ settings, mode: 'test', now, audit }),
  }
  const faults = createFaultPlan({ seed, nowMs })
  faults.replace(settings.faults)
  const drifter = createDrifter({ worlds, now, seed })
  drifter.set(settings.drift)
  if (settings.warm)
    for (const { ordered, json } of Object.values(worlds.live)) for (const record of ordered()) json(record)
  return {
    settings,
    /** The valid tokens. */
    tokens: new Set([settings.token]),
    worlds,
    audit,
    clock,
    faults,
    drifter,
    later: createLater(),
    /** The active rate limits. */
    buckets: new WeakMap<object, () => number>(),
    /** The source of randomness in responses. */
    chance: new Chance(seed, 7_000_000_001),
  }
}

/** Decimals are raw JSON text; Django's own default is to write them as strings. */
function writer(decimals: Settings['decimals']): (value: unknown) => string {
  if (decimals === 'numbers') return JSON.stringify
  const replace = (_key: string, value: unknown) => (JSON.isRawJSON(value) ? value.rawJSON : value)
  return (value) => JSON.stringify(value, replace)
}

function generatorsOf(settings: Settings, mode: Mode): Record<ResourceName, RecordGenerator> {
  const testMode = mode === 'test'
  const { needsAttention } = settings
  const neighbours = testMode ? settings.testCounts : settings.counts
  return {
    customers: customerGenerator(testMode),
    subscriptions: subscriptionGenerator({ testMode, neighbours, needsAttention }),
    plans: planGenerator,
    retentions: retentionGenerator(testMode),
    products: bareGenerator('prod'),
    addons: bareGenerator('add'),
    orders: bareGenerator('ord'),
    creditnotes: creditNoteGenerator(testMode),
    cancellations: cancellationGenerator(testMode),
  }
}

function createWorld(options: { settings: Settings; mode: Mode; now: () => number; audit: Audit }): World {
  const { settings, mode, now, audit } = options
  const write = writer(settings.decimals)
  const generators = generatorsOf(settings, mode)
  const collections = resourceNames.map((name, number) => {
    const seed = mix(settings.seed, number * 2 + (mode === 'test' ? 1 : 0))
    const generator = generators[name]
    // Group sizes are chosen for the live lists; those in test mode are small.
    const tied: Partial<Record<ResourceName, Ties>> = mode === 'live' ? settings.ties : {}
    const records = createHistory({
      count: (mode === 'live' ? settings.counts : settings.testCounts)[name],
      seed,
      ties: tied[name] ?? {},
      generator,
    })
    return [
      name,
      createCollection({
        generator,
        seed,
        write,
        records,
        now,
        tell: (change) => audit.effect(mode, name, change),
      }),
    ] as const
  })
  return Object.fromEntries(collections) as World
}

/** The service's clock, in microseconds since 1970: this machine's, shifted by a skew; every call returns a later time. */
function createClock(skewSeconds: number) {
  let last = 0
  const now = (): number => {
    const exact = Math.floor((performance.timeOrigin + performance.now()) * 1000) + skewSeconds * SECOND
    return (last = Math.max(last + 1, exact))
  }
  return { now, nowMs: () => now() / 1000 }
}

/** Schedules what happens some time after a request, answered or not. */
function createLater() {
  const waiting = new Map<NodeJS.Timeout, () => void>()
  function act(timer: NodeJS.Timeout): void {
    const action = waiting.get(timer)
    clearTimeout(timer)
    waiting.delete(timer)
    action?.()
  }
  return {
    schedule(seconds: number, action: () => void): void {
      const timer = setTimeout(() => act(timer), seconds * 1000)
      waiting.set(timer, action)
    },
    waiting: () => waiting.size,
    /** Runs everything now, in the order in which it was scheduled. */
    landAll(): void {
      for (const timer of waiting.keys()) act(timer)
    },
    close(): void {
      for (const timer of waiting.keys()) clearTimeout(timer)
      waiting.clear()
    },
  }
}
