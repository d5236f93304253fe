import { customerGenerator } from './data/customers.ts'
import { bareGenerator, cancellationGenerator, creditNoteGenerator } from './data/documents.ts'
import { createHistory } from './data/history.ts'
import { planGenerator } from './data/plans.ts'
import { mix } from './data/random.ts'
import { retentionGenerator } from './data/retentions.ts'
import { subscriptionGenerator } from './data/subscriptions.ts'
import {
  type ListName,
  listNames,
  type Mode,
  type ResourceName,
  resourceNames,
  type Settings,
} from './options.ts'
import { type Change, Collection } from './store/collection.ts'
import { type Generator, RecordSource } from './store/record-source.ts'

/** All records of one mode. */
export type World = Record<ResourceName, Collection>

/** Decimals are raw JSON text; Django's own default is to write them as strings. */
function writer(decimals: Settings['decimals']): (value: unknown) => string {
  if (decimals === 'numbers') return JSON.stringify
  const replace = (_key: string, value: unknown) => (JSON.isRawJSON(value) ? value.rawJSON : value)
  return (value) => JSON.stringify(value, replace)
}

function generators(settings: Settings, mode: Mode, seed: number): Record<ResourceName, Generator> {
  const testMode = mode === 'test'
  const { needsAttention } = settings
  const neighbours = settings.counts[mode]
  return {
    customers: customerGenerator({ seed, testMode }),
    subscriptions: subscriptionGenerator({ seed, testMode, neighbours, needsAttention }),
    plans: planGenerator({ seed }),
    retentions: retentionGenerator({ seed, testMode }),
    products: bareGenerator('prod'),
    addons: bareGenerator('add'),
    orders: bareGenerator('ord'),
    creditnotes: creditNoteGenerator({ seed, testMode }),
    cancellations: cancellationGenerator({ seed, testMode }),
  }
}

export function createWorld(options: {
  settings: Settings
  mode: Mode
  now: () => number
  tell: (mode: Mode, resource: ResourceName, change: Change) => number
}): World {
  const { settings, mode, now } = options
  const write = writer(settings.decimals)
  const isList = (name: ResourceName): name is ListName => (listNames as readonly string[]).includes(name)
  const collections = resourceNames.map((name, number) => {
    const seed = mix(settings.seed, number * 2 + (mode === 'test' ? 1 : 0))
    const generator = generators(settings, mode, seed)[name]
    const source = new RecordSource({ generator, seed, write })
    // Group sizes are chosen for the live lists; those in test mode are small.
    const ties = (mode === 'live' && isList(name) && settings.ties[name]) || {}
    const records = createHistory({ count: settings.counts[mode][name], seed, ties, source })
    const tell = (change: Change) => options.tell(mode, name, change)
    return [name, new Collection({ name, source, records, now, tell })] as const
  })
  return Object.fromEntries(collections) as World
}
