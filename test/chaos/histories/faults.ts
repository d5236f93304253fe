import type { Fault } from '../../../sandbox/faults.ts'
import type { Random } from '../random.ts'

/** Half of what a run waits before it looks: a lost request has taken its effect by then, if it ever does. */
export const lateSeconds = 0.03

/** With `lateSeconds` still less than that wait: when a run looks, a late resume has fallen back, too. */
const fallSeconds = 0.01

export const writes = [
  'POST /retentions/',
  'POST /addons/',
  'POST /products/',
  'PATCH /contacts/{id}/',
  'PATCH /subscriptions/{id}/',
  'DELETE /orders/{id}/',
  'POST /subscriptions/{id}/resume/',
]

/** What service, network and gateway do to a write. */
const onWrites: Readonly<Record<string, Fault>> = {
  'lost reply': { kind: 'reset', effect: 'done' },
  'lost request': { kind: 'reset', effect: 'none' },
  'late effect': { kind: 'lateEffect', seconds: lateSeconds },
  'late effect after a 500': { kind: 'lateEffect', seconds: lateSeconds, reply: 'error' },
  'failed after the effect': { kind: 'error', effect: 'done' },
  'failed before the effect': { kind: 'error', effect: 'none' },
  'gateway page 502 after the effect': { kind: 'error', status: 502, html: true, effect: 'done' },
  'gateway page 400 after the effect': { kind: 'error', status: 400, html: true, effect: 'done' },
  'gateway page 404 after the effect': { kind: 'error', status: 404, html: true, effect: 'done' },
  'gateway page 409 before the effect': { kind: 'error', status: 409, html: true, effect: 'none' },
  'gateway page 422 after the effect': { kind: 'error', status: 422, html: true, effect: 'done' },
  'reply cut short': { kind: 'cutBody' },
  'reply cut short, with a length that fits': { kind: 'cutBody', framing: 'whole' },
  refused: { kind: 'refuse', answer: { non_field_errors: ['No.'] } },
}

/** Connections that break: these open no breaker, whose trials take minutes. */
const losses = ['lost reply', 'lost request', 'late effect', 'reply cut short'] as const

/** One loss of a third of the writes. */
export function chooseLoss(random: Random): { name: string; fault: Fault } {
  const name = random.pick(losses)
  const kind = onWrites[name] as Fault
  return { name, fault: { ...kind, on: writes, rate: 0.3 } }
}

const onReads: Readonly<Record<string, Fault>> = {
  'read lost': { kind: 'reset' },
  'read failed': { kind: 'error', status: 503, html: true },
  'page cut short': { kind: 'cutBody' },
}

const onLists: Readonly<Record<string, Fault>> = {
  ...onReads,
  'gateway page 200': { kind: 'notFound', html: true },
  'page of before': { kind: 'repeatPage' },
  'records left out of a page': { kind: 'shortWindow', drop: 3 },
  'ordering ignored': { kind: 'ignoreOrdering' },
  'wrong type': { kind: 'wrongType', field: 'created', value: 7 },
  throttled: { kind: 'throttle', perSecond: 200, burst: 3, retryAfter: 'none' },
}

/** What strikes the reads of lists. */
export function chooseListFaults(random: Random): { names: string[]; faults: Fault[] } {
  const chosen = Array.from({ length: random.below(3) }, () => random.pick(Object.entries(onLists)))
  return {
    names: chosen.map(([name]) => name),
    faults: chosen.map(([, kind]) => ({ ...kind, rate: random.pick([0.02, 0.1, 0.3]) })),
  }
}

/** Some of them, each striking some requests; their names, and as the sandbox takes them. */
export function chooseServiceFaults(random: Random): { names: string[]; faults: Fault[] } {
  const chosen = (from: typeof onWrites, most: number) =>
    Array.from({ length: random.below(most + 1) }, () => random.pick(Object.entries(from)))
  const struck = chosen(onWrites, 3).map(([name, kind]) => ({
    name,
    fault: { ...kind, on: writes, rate: 0.1 + random.fraction() * 0.4 },
  }))
  const reads = chosen(onReads, 1).map(([name, kind]) => ({
    name,
    fault: { ...kind, on: ['GET /retentions/', 'GET /subscriptions/'], rate: 0.1 },
  }))
  const falling = random.happens(0.5)
    ? [
        {
          name: 'resume falls back',
          fault: {
            kind: 'fallBack' as const,
            rate: 0.5,
            ...(random.happens(0.3) && { afterSeconds: fallSeconds }),
          },
        },
      ]
    : []
  const all = [...struck, ...reads, ...falling]
  return { names: all.map(({ name }) => name), faults: all.map(({ fault }) => fault) }
}

/** What happens to the worker and its files, and how likely each is. */
const weights = {
  kill: 4,
  freeze: 2,
  pause: 2,
  stop: 1,
  terminate: 1,
  reset: 1,
  'lock lost': 1,
  backup: 4,
  'state.db restored': 3,
  'state.db and Temporal restored': 2,
  'everything restored but Temporal': 1,
  'everything and Temporal restored': 1,
  'run files restored': 1,
  'mark lost': 1,
} as const

export type Blow = keyof typeof weights

const blows = Object.entries(weights).flatMap(([name, weight]) =>
  Array.from({ length: weight }, () => name as Blow),
)

export const chooseBlow = (random: Random): Blow => random.pick(blows)
