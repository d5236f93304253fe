import { z } from 'zod'
import { faultFields, faultSchema, parse, strictObject, whenFields } from './faults.ts'

export type Mode = 'live' | 'test'

/** How many records there are at the start. The place of a name seeds its data, so a new one goes to the end. */
const usualCounts = {
  customers: { live: 1000, test: 40 },
  subscriptions: { live: 400, test: 20 },
  plans: { live: 60, test: 10 },
  retentions: { live: 500, test: 20 },
  products: { live: 0, test: 0 },
  addons: { live: 0, test: 0 },
  orders: { live: 200, test: 10 },
  creditnotes: { live: 50, test: 5 },
  cancellations: { live: 50, test: 5 },
} satisfies Record<string, Record<Mode, number>>
export type ResourceName = keyof typeof usualCounts

export const resourceNames = Object.keys(usualCounts) as ResourceName[]

export const listNames = [
  'customers',
  'subscriptions',
  'plans',
  'retentions',
] as const satisfies readonly ResourceName[]
export type ListName = (typeof listNames)[number]

const forEach = <Name extends string, T>(names: readonly Name[], valueOf: (name: Name) => T) =>
  Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<Name, T>

/** Options of each list, by its name. */
const byList = <Schema extends z.ZodType>(schema: Schema) => strictObject(forEach(listNames, () => schema))

/** Records with the same `created`. */
const ties = strictObject({
  /** The share of records with the `created` of the previous record. */
  share: z.number().exactOptional(),
  /** Groups of exactly these sizes, spread evenly over the list. */
  groups: z.array(z.number()).readonly().exactOptional(),
})
export type Ties = z.output<typeof ties>

/** The features of a list. */
const manners = strictObject({
  /** The supported values of `ordering`; any other is silently ignored. */
  orderings: z
    .array(z.string())
    .readonly()
    .default(['created', '-created', 'updated', '-updated', 'id', '-id']),
  /** The order if the request has none, or an ignored one. */
  defaultOrdering: z.string().default('-created'),
})
export type ListManners = z.output<typeof manners>

/** How many records to change. */
const driftAmounts = strictObject({
  deletes: z.number().exactOptional(),
  inserts: z.number().exactOptional(),
  updates: z.number().exactOptional(),
  /** Records that appear now with a `created` up to `lateBySeconds` ago: a transaction that committed late. */
  lateCommits: z.number().exactOptional(),
  /** Deleted records that reappear at their old position. */
  restores: z.number().exactOptional(),
})
export type DriftAmounts = z.output<typeof driftAmounts>

/** Lists that change while they are read; live mode only. */
const drift = byList(
  strictObject({
    perSecond: driftAmounts.exactOptional(),
    /** After each request to this list; independent of the clock. */
    perRequest: driftAmounts.exactOptional(),
    /** The maximum age of a late commit's `created` (default 30). */
    lateBySeconds: z.number().exactOptional(),
  }).exactOptional(),
)
export type Drift = z.output<typeof drift>

const countsIn = (mode: Mode) =>
  strictObject(forEach(resourceNames, (name) => z.int().min(0).default(usualCounts[name][mode])))

const optionsSchema = strictObject({
  port: z.int().default(0).meta({ help: 'as --port' }),
  host: z.string().default('127.0.0.1').meta({ help: 'as --host' }),
  seed: z.int().default(1).meta({ help: 'determines data, drift and faults' }),
  counts: countsIn('live')
    .prefault({})
    .meta({ help: `records at the start, of ${resourceNames.join(', ')}` }),
  testCounts: countsIn('test').prefault({}).meta({ help: 'the same in test mode' }),
  ties: byList(ties.exactOptional())
    .default({})
    .meta({ help: 'records of a list with one `created`: share, groups' }),
  needsAttention: z.number().default(0.1).meta({ help: 'share of subscriptions in needs_attention' }),
  token: z.string().default('sandbox-token').meta({ help: 'the token that it accepts' }),
  workspace: z.string().default('acc_sandbox').meta({ help: 'the workspace that it accepts' }),
  decimals: z
    .enum(['numbers', 'strings'])
    .default('numbers')
    .meta({ help: '"numbers" in JSON, or "strings", which is Django\'s own default' }),
  tieOrder: z
    .enum(['shuffled', 'stable'])
    .default('shuffled')
    .meta({ help: 'records with equal sort keys: "shuffled" as in a database, or "stable"' }),
  lists: byList(manners.prefault({}))
    .prefault({})
    .meta({ help: 'what a list honours: orderings, defaultOrdering' }),
  honoursTestMode: z.boolean().default(true).meta({ help: 'false: requests of test mode act on live data' }),
  // Writes all JSON before serving: 12 microseconds a record.
  warm: z.boolean().default(false).meta({ help: 'true: the first read is as fast as the second' }),
  clockSkewSeconds: z.number().default(0).meta({ help: 'how far its clock is ahead' }),
  dateHeader: z.boolean().default(true).meta({ help: 'false: replies have no Date' }),
  faults: z
    .array(faultSchema)
    .readonly()
    .default([])
    .meta({ help: 'a list, as in [{"kind": "error", "rate": 0.01}]' }),
  drift: drift.default({}).meta({ help: 'changes of a list: perSecond, perRequest, lateBySeconds' }),
  audit: z
    .enum(['all', 'writes', 'none'])
    .default('all')
    .meta({ help: 'the requests that it keeps: "all", "writes" or "none"; it keeps every effect' }),
})

/** Plain JSON. */
export type SandboxOptions = z.input<typeof optionsSchema>
export type Settings = z.output<typeof optionsSchema>

/** @throws {RangeError} as `parse` */
export const toSettings = (options: SandboxOptions): Settings => parse(optionsSchema, options)

/** The options of a file, for the command's help. */
export function describeOptions(): string {
  const line = ([name, about]: readonly [string, string]) => `  ${name.padEnd(17)}${about}`.trimEnd()
  const options = Object.entries(optionsSchema.shape).map(
    ([name, schema]) => [name, String(schema.meta()?.['help'])] as const,
  )
  const amounts = Object.keys(driftAmounts.shape).join(', ')
  return [
    'The file of --options:',
    ...options.map(line),
    `  (ties, lists, drift: each for ${listNames.join(', ')}; perSecond and perRequest: ${amounts})`,
    '',
    `Its faults, each with any of ${whenFields.join(', ')}:`,
    ...faultFields.map(line),
  ].join('\n')
}
