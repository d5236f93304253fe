import { Audit } from './audit.ts'
import { Clock } from './clock.ts'
import { Chance } from './data/random.ts'
import { Drifter } from './drift.ts'
import { FaultPlan, type Struck } from './fault-plan.ts'
import { type Fault, faultKinds } from './faults.ts'
import { Later } from './later.ts'
import { type Mode, type SandboxOptions, type Settings, toSettings } from './options.ts'
import { Replicas } from './replicas.ts'
import type { ChangeSource } from './store/collection.ts'
import type { TokenBucket } from './throttle.ts'
import { createWorld, type World } from './world.ts'

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
  const world = (mode: Mode) =>
    createWorld({
      settings,
      mode,
      now,
      tell: (mode, resource, change) => audit.effect(mode, resource, change),
    })
  const worlds = { live: world('live'), test: world('test') }
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
    for (const { source, view } of Object.values(worlds.live))
      for (const record of view.ordered('created').all()) source.json(record)
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
