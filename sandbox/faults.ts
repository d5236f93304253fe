import { z } from 'zod'
import { Chance } from './data/random.ts'

/** An object that refuses other names, and says which ones it has. */
export const strictObject = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `there is no ${issue.keys.join(', ')}; the names are ${Object.keys(shape).join(', ')}`
        : undefined,
  })

/** @throws {RangeError} a name that there is not, or another kind of value: nothing that is mistyped is ignored */
export function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const { path, message } = parsed.error.issues[0]!
  const where = path.length === 0 ? '' : `${path.join('.')}: `
  throw new RangeError(where + message, { cause: parsed.error })
}

/**
 * When a fault applies; default: to every request. Requests are counted from 1 among those selected by the
 * fault's `on`, `ids` and `body`, from the moment the fault is set.
 */
const when = {
  /** Operations such as `GET /customers/` or `POST /subscriptions/{id}/resume/`. */
  on: z.union([z.string(), z.array(z.string()).readonly()]).exactOptional(),
  /** Only requests whose path contains one of these ids. */
  ids: z.array(z.string()).readonly().exactOptional(),
  /** Only requests whose body has these values in these fields. */
  body: z.record(z.string(), z.unknown()).readonly().exactOptional(),
  /** The share of requests, drawn with the seed. */
  rate: z.number().exactOptional(),
  /** Exactly these requests. */
  requests: z.array(z.number()).readonly().exactOptional(),
  /** From this request on. */
  from: z.number().exactOptional(),
  /** Up to and including this request. */
  to: z.number().exactOptional(),
  /** Only for this long after the fault was set. */
  forSeconds: z.number().exactOptional(),
}
export const whenFields = Object.keys(when)

const fault = <Kind extends string, Shape extends z.ZodRawShape>(kind: Kind, shape: Shape) =>
  strictObject({ kind: z.literal(kind), ...when, ...shape })

/** Whether the write is done although the response does not say so. */
const effect = z.enum(['none', 'done']).exactOptional()
const number = z.number()
const text = z.string()

/** The kinds of faults. All are plain JSON, so that another process can set them. */
const faults = [
  /**
   * Waits before the effect (default) or between effect and response; the effect happens even if the client
   * has disconnected.
   */
  fault('latency', {
    ms: number,
    jitterMs: number.exactOptional(),
    where: z.enum(['before', 'after']).exactOptional(),
  }),
  /** 429 from a token bucket, initially full; `burst` is its size (default: the tokens of one second). */
  fault('throttle', {
    perSecond: number,
    burst: number.exactOptional(),
    retryAfter: z.enum(['seconds', 'date', 'none']).exactOptional(),
  }),
  /** 500 as Django returns it, or another status; `html` for a gateway's page. */
  fault('error', { status: number.exactOptional(), html: z.boolean().exactOptional(), effect }),
  /** The connection is reset. */
  fault('reset', { effect }),
  /** The response is lost, and the effect happens this much later. */
  fault('lateEffect', { seconds: number, reply: z.enum(['reset', 'error']).exactOptional() }),
  /**
   * Only the first part of the body arrives (default half): cut off, or, as `whole`, with a matching length.
   */
  fault('cutBody', { keep: number.exactOptional(), framing: z.enum(['broken', 'whole']).exactOptional() }),
  /** In this many records of a page (default 1) the field has this value. */
  fault('wrongType', { field: text, value: z.unknown(), records: number.exactOptional() }),
  fault('ignoreOrdering', {}),
  /** All filters, or the named ones, are silently ignored. */
  fault('ignoreFilters', { filters: z.array(text).readonly().exactOptional() }),
  /** The rows of the previous page are served again. */
  fault('repeatPage', {}),
  /** Drops this many records after the page was cut. */
  fault('shortWindow', { drop: number }),
  /** Records with these statuses are shown only if filtered by that status. */
  fault('hide', { statuses: z.array(text).readonly() }),
  /** The tokens expire with this request; `next` is valid from then on. */
  fault('expireToken', { next: text.exactOptional() }),
  /** At most `cap` records per page; with `fixed`, always that many, whatever is requested. */
  fault('pageSize', { cap: number, fixed: z.boolean().exactOptional() }),
  /** A gateway without a backend. */
  fault('notFound', { html: z.boolean().exactOptional() }),
  /** A resume ends in `needs_attention` again, for the same or another reason, immediately or later. */
  fault('fallBack', { reason: text.exactOptional(), afterSeconds: number.exactOptional() }),
  /** The request is rejected with this response. */
  fault('refuse', { answer: z.unknown(), status: number.exactOptional() }),
  /**
   * Another client creates a retention with the body's supplier, document and number, or with other fields.
   */
  fault('otherClient', {
    fields: z.record(text, z.unknown()).readonly().exactOptional(),
    when: z.enum(['before', 'after']).exactOptional(),
  }),
  /** The service stores values other than those sent. */
  fault('storeOtherwise', { fields: z.record(text, z.unknown()).readonly() }),
] as const

export const faultSchema = z.discriminatedUnion('kind', faults, {
  error: () => `the kinds are ${faultFields.map(([kind]) => kind).join(', ')}`,
})

/** Each kind with its own fields. */
export const faultFields = faults.map(({ shape }) => {
  const { kind, ...own } = shape
  return [
    kind.value,
    Object.keys(own)
      .filter((field) => !Object.hasOwn(when, field))
      .join(', '),
  ] as const
})

export type Fault = z.output<typeof faultSchema>
type Kind = Fault['kind']

export type FaultOf<K extends Kind> = Extract<Fault, { kind: K }>

/** The facts about a request that decide which faults apply. */
export interface FaultSubject {
  /** `GET /customers/`, `PATCH /contacts/{id}/`. */
  operation: string
  id: string
  body: unknown
}

/** The faults that apply to one request. */
export interface Struck {
  kinds: string[]
  /** The first fault of this kind. */
  find<K extends Kind>(kind: K): FaultOf<K> | undefined
  all<K extends Kind>(kind: K): FaultOf<K>[]
}

const toStruck = (faults: readonly Fault[]): Struck => ({
  kinds: faults.map(({ kind }) => kind),
  find: <K extends Kind>(kind: K) => faults.find((fault) => fault.kind === kind) as FaultOf<K>,
  all: <K extends Kind>(kind: K) => faults.filter((fault) => fault.kind === kind) as FaultOf<K>[],
})

/** Decides which faults apply to a request; each fault has its own counter and random draws. */
export function createFaultPlan({ seed, nowMs }: { seed: number; nowMs: () => number }) {
  let armed: { fault: Fault; seen: number; setAt: number; chance: Chance }[] = []
  let count = 0

  function add(fault: Fault): void {
    // An unknown fault would never apply, and its test would prove nothing.
    parse(faultSchema, fault)
    armed.push({ fault, seen: 0, setAt: nowMs(), chance: new Chance(seed, 5_000_000_029 + count++) })
  }

  function strikes(one: (typeof armed)[number], subject: FaultSubject): boolean {
    const { requests, from = 1, to = Infinity, forSeconds = Infinity, rate = 1 } = one.fault
    if (!selects(one.fault, subject)) return false
    one.seen++
    if (requests !== undefined && !requests.includes(one.seen)) return false
    if (one.seen < from || one.seen > to) return false
    return (nowMs() - one.setAt) / 1000 <= forSeconds && one.chance.happens(rate)
  }

  return {
    add,
    replace(faults: readonly Fault[]): void {
      armed = []
      for (const fault of faults) add(fault)
    },
    strike: (subject: FaultSubject): Struck =>
      toStruck(armed.filter((one) => strikes(one, subject)).map(({ fault }) => fault)),
  }
}

function selects({ on, ids, body }: Fault, subject: FaultSubject): boolean {
  if (on !== undefined && ![on].flat().includes(subject.operation)) return false
  if (ids !== undefined && !ids.includes(subject.id)) return false
  if (body === undefined) return true
  const sent = subject.body as Record<string, unknown> | null
  return Object.entries(body).every(
    ([field, value]) => JSON.stringify(sent?.[field]) === JSON.stringify(value),
  )
}

/**
 * A token bucket, initially full. The function takes a token and returns 0, or returns the seconds until there is one.
 */
export function createTokenBucket(limit: FaultOf<'throttle'>, nowMs: () => number): () => number {
  const { perSecond } = limit
  const size = limit.burst ?? Math.max(1, perSecond)
  let tokens = size
  let filledAt = nowMs()
  return () => {
    const now = nowMs()
    tokens = Math.min(size, tokens + ((now - filledAt) / 1000) * perSecond)
    filledAt = now
    if (tokens < 1) return (1 - tokens) / perSecond
    tokens -= 1
    return 0
  }
}

/** The header's value, rounded up to whole seconds: a token is available after that time. */
export function retryAfter(options: { seconds: number; form: 'seconds' | 'date'; nowMs: number }): string {
  if (options.form === 'seconds') return String(Math.ceil(options.seconds))
  return new Date(Math.ceil((options.nowMs + options.seconds * 1000) / 1000) * 1000).toUTCString()
}
