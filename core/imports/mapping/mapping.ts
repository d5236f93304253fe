import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { dateOrders } from '../cells/dates.ts'
import { MappingError } from '../errors.ts'
import { toProblems } from '../../runs/parse-input.ts'
import { refuseLarge } from '../file-size.ts'
import { conventionsOf, type Conventions } from '../cells/locale.ts'

/** How every field is written: `supplier`, `lines.2.amount`. Capitals and blanks around it don't matter. */
const fieldName = z.string().regex(/^\s*[a-z][a-z0-9_]{0,59}(\.[a-z0-9_]{1,60}){0,3}\s*$/i)

/** How the columns of somebody's file become ours; what `mapping.json` holds. */
const mappingSchema = z.strictObject({
  /** Their column to our field; null: leave the column out. */
  columns: z.record(z.string(), z.string().nullable()).optional(),
  /** A field that is the same in every row. */
  set: z.record(z.string(), z.string()).optional(),
  /** A field whose cells are looked up in a file of two columns, theirs and ours. */
  lookups: z
    .record(fieldName, z.string(), {
      error: ({ code }) =>
        code === 'invalid_key' ? 'is not the name of a field, as "supplier" or "lines.1.name"' : undefined,
    })
    .optional(),
  locale: z.string().optional(),
  decimal: z.enum([',', '.']).optional(),
  dates: z.enum(dateOrders).optional(),
})
export type Mapping = z.infer<typeof mappingSchema>

/** @throws {MappingError} naming what is wrong */
export function parseMapping(value: unknown, name = 'the mapping'): Mapping {
  const parsed = mappingSchema.safeParse(value)
  if (parsed.success) return parsed.data
  // Below its own fields, names come from somebody's file; so do the names of fields that it does not know.
  const fields = new Set(parsed.error.issues.map(({ path }) => String(path[0] ?? 'it')))
  throw new MappingError(`${name} can't be used: ${toProblems(parsed.error, 'it')}.`, {
    withoutValues: `${name} can't be used: ${[...fields].join(', ')} is not as docs/imports.md describes it.`,
  })
}

/**
 * Reads a `mapping.json`. Files that it names for look-ups lie beside it.
 * @throws {MappingError}
 * @throws {UnreadableFileError} where it is too large
 */
export async function readMapping(path: string): Promise<Mapping> {
  await refuseLarge(path, 'mapping')
  const text = await readFile(path, 'utf8')
  const mapping = parseMapping(parseJson(text, path), path)
  if (mapping.lookups === undefined) return mapping
  const beside = Object.entries(mapping.lookups).map(([field, file]) => [field, resolve(dirname(path), file)])
  return { ...mapping, lookups: Object.fromEntries(beside) as Record<string, string> }
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // The parser's own message quotes the file.
    const message = `${path} is not valid JSON${placeIn(cause)}.`
    throw new MappingError(message, { withoutValues: message, cause })
  }
}

const placeIn = (error: unknown): string => {
  const place = /line \d+ column \d+/.exec(String(error))?.[0]
  return place === undefined ? '' : ` (${place})`
}

export interface MappingOptions {
  /** A stored mapping; what else is given here goes before it. */
  base?: Mapping
  /** `Folio=number`; `Comentario=` leaves that column out. */
  map?: readonly string[]
  /** `document=7` */
  set?: readonly string[]
  /** `supplier=suppliers.csv` */
  lookup?: readonly string[]
  locale?: string
  decimal?: string
  dates?: string
}

/** A mapping from what is written on a command line. Throws MappingError. */
export function toMapping({ base = {}, map = [], set = [], lookup = [], ...said }: MappingOptions): Mapping {
  // A locale given here decides more than a mark or an order stored there.
  const stored = said.locale === undefined ? base : { ...base, decimal: undefined, dates: undefined }
  const columns = Object.entries(pairs('--map', map)).map(([theirs, ours]) => [theirs, ours || null])
  return parseMapping({
    ...stored,
    ...Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)),
    columns: { ...base.columns, ...Object.fromEntries(columns) },
    set: { ...base.set, ...pairs('--set', set) },
    lookups: { ...base.lookups, ...pairs('--lookup', lookup) },
  })
}

/** The last `=` parts a pair for `--map` (their names may hold one), the first one for the others (values may). */
function pairs(option: '--map' | '--set' | '--lookup', texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text): [string, string] => {
      const at = option === '--map' ? text.lastIndexOf('=') : text.indexOf('=')
      if (at < 1)
        throw new MappingError(`${option} ${text}: write it as ${examples[option]}.`, {
          withoutValues: `${option} is written as ${examples[option]}.`,
        })
      return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
    }),
  )
}

const examples = {
  '--map': '"Folio=number"',
  '--set': 'document=7',
  '--lookup': 'supplier=suppliers.csv',
} as const

/** How numbers and dates are read under a mapping: what it says itself goes before what its locale says. */
export function conventionsIn({ locale, decimal, dates }: Mapping): Conventions {
  const said = { ...(decimal !== undefined && { decimal }), ...(dates !== undefined && { dates }) }
  return locale === undefined ? said : { ...conventionsOf(locale), ...said }
}
