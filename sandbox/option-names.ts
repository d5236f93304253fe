import type { FaultKind, FaultOf, FaultWhen } from './faults.ts'
import {
  type DriftAmounts,
  type ListDrift,
  type ListManners,
  listNames,
  resourceNames,
  type SandboxOptions,
  type Ties,
} from './options.ts'

/** The names that a file of options may have, and what each is. */
const optionsHelp = {
  port: 'as --port',
  host: 'as --host',
  seed: 'determines data, drift and faults',
  counts: `records at the start, of ${resourceNames.join(', ')}`,
  testCounts: 'the same in test mode',
  ties: 'records of a list with one `created`: share, groups',
  needsAttention: 'share of subscriptions in needs_attention',
  token: 'the token that it accepts',
  workspace: 'the workspace that it accepts',
  decimals: '"numbers" or "strings"',
  tieOrder: '"shuffled" or "stable": records with equal sort keys',
  lists: 'what a list honours: orderings, defaultOrdering',
  honoursTestMode: 'false: requests of test mode act on live data',
  warm: 'true: the first read is as fast as the second',
  clockSkewSeconds: 'how far its clock is ahead',
  dateHeader: 'false: replies have no Date',
  faults: 'a list, as in [{"kind": "error", "rate": 0.01}]',
  drift: 'changes of a list: perSecond, perRequest, lateBySeconds',
  audit: '"all", "writes" or "none": the requests that it keeps',
} satisfies Record<keyof SandboxOptions, string>

const whenFields = [
  'on',
  'ids',
  'body',
  'rate',
  'requests',
  'from',
  'to',
  'forSeconds',
] satisfies (keyof FaultWhen)[]

type OwnField<K extends FaultKind['kind']> = Exclude<keyof FaultOf<K>, keyof FaultWhen | 'kind'>

/** The fields of each kind of fault, besides `whenFields`. */
const faultFields: { [K in FaultKind['kind']]: OwnField<K>[] } = {
  latency: ['ms', 'jitterMs', 'where'],
  throttle: ['perSecond', 'burst', 'retryAfter'],
  error: ['status', 'html', 'effect'],
  reset: ['effect'],
  lateEffect: ['seconds', 'reply'],
  cutBody: ['keep', 'framing'],
  wrongType: ['field', 'value', 'records'],
  ignoreOrdering: [],
  ignoreFilters: ['filters'],
  repeatPage: [],
  shortWindow: ['drop'],
  hide: ['statuses'],
  expireToken: ['next'],
  pageSize: ['cap', 'fixed'],
  notFound: ['html'],
  fallBack: ['reason', 'afterSeconds'],
  refuse: ['answer', 'status'],
  otherClient: ['fields', 'when'],
  storeOtherwise: ['fields'],
}

const amounts = ['deletes', 'inserts', 'updates', 'lateCommits', 'restores'] satisfies (keyof DriftAmounts)[]

/** The names within an option; none: they are not checked. */
interface Names {
  [name: string]: Names | undefined
}

const each = (names: readonly string[], within?: Names): Names =>
  Object.fromEntries(names.map((name) => [name, within]))

const known: Names = {
  ...each(Object.keys(optionsHelp)),
  counts: each(resourceNames),
  testCounts: each(resourceNames),
  ties: each(listNames, each(['share', 'groups'] satisfies (keyof Ties)[])),
  lists: each(listNames, each(['orderings', 'defaultOrdering'] satisfies (keyof ListManners)[])),
  drift: each(listNames, {
    perSecond: each(amounts),
    perRequest: each(amounts),
    lateBySeconds: undefined,
  } satisfies Record<keyof ListDrift, unknown>),
}

interface Unknown {
  /** For example `drift.plans.perSecnd`. */
  path: string
  name: string
  known: readonly string[]
}

/** The names of a file of options that mean nothing to the sandbox. */
export function findUnknown(options: object): Unknown[] {
  const { faults } = options as { faults?: unknown }
  const listed = Array.isArray(faults) ? (faults as unknown[]) : []
  return [
    ...findIn(options, known, ''),
    ...listed.flatMap((fault, at) => {
      const path = `faults.${at}.`
      const { kind } = fault as { kind?: unknown }
      const fields = Object.entries(faultFields).find(([name]) => name === kind)?.[1]
      return fields === undefined
        ? [{ path: `${path}kind`, name: String(kind), known: Object.keys(faultFields) }]
        : findIn(fault, each(['kind', ...whenFields, ...fields]), path)
    }),
  ]
}

function findIn(value: unknown, names: Names, path: string): Unknown[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    if (!Object.hasOwn(names, name)) return [{ path: path + name, name, known: Object.keys(names) }]
    const within = names[name]
    return within === undefined ? [] : findIn(inner, within, `${path}${name}.`)
  })
}

/** The options of a file, for the command's help. */
export function describeOptions(): string {
  const line = ([name, about]: readonly [string, string]) => `  ${name.padEnd(17)}${about}`.trimEnd()
  const faults = Object.entries(faultFields).map(([kind, fields]) => [kind, fields.join(', ')] as const)
  return [
    'The file of --options:',
    ...Object.entries(optionsHelp).map(line),
    `  (ties, lists, drift: each for ${listNames.join(', ')}; perSecond and perRequest: ${amounts.join(', ')})`,
    '',
    `Its faults, each with any of ${whenFields.join(', ')}:`,
    ...faults.map(line),
  ].join('\n')
}
