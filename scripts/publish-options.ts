import { manifestSchema } from '../destinations/manifest.ts'
import { UsageError } from './terminal/failures.ts'

const destinations = manifestSchema.shape.destination.options
export type Destination = (typeof destinations)[number]

/** `csv,duckdb`: each once, in the order given. */
export function toDestinations(text: string): Destination[] {
  const named = text.split(',').map((part) => {
    const name = part.trim()
    const known = destinations.find((one) => one === name)
    if (known !== undefined) return known
    throw new UsageError(`There is no destination ${name}; choose from ${destinations.join(', ')}.`)
  })
  return [...new Set(named)]
}

export function toMaxDeletes(text: string): number | 'all' {
  if (text === 'all') return text
  if (!/^\d{1,9}$/.test(text))
    throw new UsageError(`--max-deletes ${text} is neither a whole number nor all.`)
  return Number(text)
}

export function refuseDetached({ local, detach }: { local: boolean; detach: boolean }): void {
  if (local && detach)
    throw new UsageError(
      '--local ends with this command, and --detach leaves the run to others; start `connector up` and leave --local away.',
    )
}
