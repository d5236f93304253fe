import { Audit } from './audit.ts'
import { customerGenerator } from './data/customers.ts'
import { bareGenerator, cancellationGenerator, creditNoteGenerator } from './data/documents.ts'
import { createHistory } from './data/history.ts'
import { planGenerator } from './data/plans.ts'
import { Chance, mix } from './data/random.ts'
import { retentionGenerator } from './data/retentions.ts'
import { subscriptionGenerator } from './data/subscriptions.ts'
import { SECOND } from './data/times.ts'
import { Drifter } from './drift.ts'
import { type Fault, FaultPlan, faultKinds, type Struck, type TokenBucket } from './faults.ts'
import {
  type Mode,
  type ResourceName,
  resourceNames,
  type SandboxOptions,
  type Settings,
  type Ties,
  toSettings,
} from './options.ts'
import { Replicas } from './replicas.ts'
import { type Change, type ChangeSource, Collection, type RecordGenerator, type World } from './store.ts'

/** The state of the stand-in; `settings` and `tokens` may change while it serves. */
export interface Service {
  settings: Settings
  /** The valid tokens. */
  tokens: Set<string>
  worlds: Record<Mode, World>
  audit: Audit
  clock: Clock
  plan: FaultPlan
  replicas: Replicas
  drifter: Drifter
  later: Later
  /** The active rate limits. */
  buckets: WeakMap<object, TokenBucket>
  /** The source of randomness in responses. */
  chance: Chance
}

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

export function createService(options: SandboxOptions): Service {
  const settings = toSettings(options)
  const { seed } = settings
  const clock = new Clock(settings.clockSkewSeconds)
  const audit = new Audit(settings.audit)
  const now = () => clock.now()
  const worlds = {
    live: createWorld({ settings, mode: 'live', now, audit }),
    test: createWorld({ settings, mode: 'test', now, audit }),
  }
  const service: Service = {
    settings,
    tokens: new Set([settings.token]),
    worlds,
    audit,
    clock,
    plan: new FaultPlan({ seed, nowMs: () => clock.nowMs() }),
    replicas: new Replicas({ worlds, now }),
    drifter: new Drifter({ worlds, now, seed, drift: options.drift ?? {} }),
    later: new Later(),
    buckets: new WeakMap(),
    chance: new Chance(seed, 7_000_000_001),
  }
  setFaults(service, options.faults ?? [])
  if (settings.warm)
    for (const collection of Object.values(worlds.live))
      for (const record of collection.view.ordered('created')) collection.json(record)
  return service
}

/** Replaces all faults by these. */
export function setFaults(service: Service, faults: readonly Fault[]): void {
  for (const fault of faults) known(fault)
  service.replicas.clear()
  for (const fault of faults) service.replicas.prepare(fault)
  service.plan.replace(faults)
}

export function addFault(service: Service, fault: Fault): void {
  known(fault)
  service.replicas.prepare(fault)
  service.plan.add(fault)
}

/** Rejects unknown faults: they would never apply, and their test would prove nothing. */
function known({ kind }: Fault): void {
  if (!faultKinds.includes(kind))
    throw new RangeError(`no such fault: ${kind}; there are ${faultKinds.join(', ')}`)
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
  return {
    customers: customerGenerator(testMode),
    subscriptions: subscriptionGenerator({ testMode, neighbours: settings.counts[mode], needsAttention }),
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
      count: settings.counts[mode][name],
      seed,
      ties: tied[name] ?? {},
      generator,
    })
    const tell = (change: Change) => audit.effect(mode, name, change)
    return [name, new Collection({ generator, seed, write, records, now, tell })] as const
  })
  return Object.fromEntries(collections) as World
}

/** The service's clock in microseconds: this machine's, shifted by a skew; strictly increasing. */
class Clock {
  readonly #skew: number
  #last = 0

  constructor(skewSeconds: number) {
    this.#skew = skewSeconds * SECOND
  }

  /** Microseconds since 1970; every call returns a different value. */
  now(): number {
    const exact = Math.floor((performance.timeOrigin + performance.now()) * 1000) + this.#skew
    this.#last = Math.max(this.#last + 1, exact)
    return this.#last
  }

  nowMs(): number {
    return this.now() / 1000
  }
}

/** Schedules what happens some time after a request, answered or not. */
class Later {
  readonly #waiting = new Map<NodeJS.Timeout, () => void>()

  schedule(seconds: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#waiting.delete(timer)
      act()
    }, seconds * 1000)
    this.#waiting.set(timer, act)
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Runs everything now, in the order in which it was scheduled. */
  landAll(): void {
    for (const [timer, act] of this.#waiting) {
      clearTimeout(timer)
      this.#waiting.delete(timer)
      act()
    }
  }

  close(): void {
    for (const timer of this.#waiting.keys()) clearTimeout(timer)
    this.#waiting.clear()
  }
}
