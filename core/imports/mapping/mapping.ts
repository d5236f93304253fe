import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { encodings } from '../csv/encoding.ts'
import { type Conventions, conventionsOf, dateOrders } from '../cells/notation.ts'
import { InvalidMapping, quote, say } from '../errors.ts'
import { toProblems, wrongType } from '../../runs/inputs.ts'
import { refuseLarge } from '../source-file.ts'

/** The form of a field name: `supplier`, `lines.2.amount`. Case and surrounding whitespace are ignored. */
const fieldName = z.string().regex(/^\s*[a-z][a-z0-9_]{0,59}(\.[a-z0-9_]{1,60}){0,3}\s*$/i)

/** How a file is written: fields of a mapping and of an import's input, and options of the command line. */
export const readingFields = {
  locale: z
    .string()
    .optional()
    .meta({ flag: '--locale <locale>', help: 'notation of numbers and dates, as in es-CL' }),
  decimal: z.enum([',', '.']).optional().meta({ help: 'the decimal mark', otherwise: 'of the locale' }),
  dates: z.enum(dateOrders).optional().meta({ help: 'the order of dates', otherwise: 'of the locale' }),
  encoding: z.enum(encodings).optional().meta({
    help: 'the encoding of a file that is not UTF-8; `utf-8` takes a UTF-8 file as it is',
  }),
  taxIds: z.enum(['with-digit', 'without-digit']).optional().meta({
    help: 'whether RUT and NIT without a hyphen end with their check digit',
  }),
  sheet: z.string().optional().meta({
    flag: '--sheet <name>',
    help: 'the sheet of a workbook',
    otherwise: 'the first visible one',
  }),
  headerRow: z.int().min(1).optional().meta({
    flag: '--header-row <n>',
    help: 'the row with the names of the columns, below a title',
  }),
  skipRows: z
    .array(z.union([z.int().min(1), z.literal('hidden')]))
    .optional()
    .meta({
      flag: '--skip-rows <rows>',
      help: 'rows to ignore, such as a total; `hidden`: the hidden rows of a workbook',
    }),
  realDates: z.boolean().optional().meta({
    help: 'the real dates of a workbook are right, although texts beside them raise a doubt',
  }),
}
type ReadingName = keyof typeof readingFields

/** Those of the options that say how a file is written. */
export const readingOf = (options: { readonly [name in ReadingName]?: unknown }): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(options).filter(([name, value]) => name in readingFields && value !== undefined),
  )

/** Which sheet of a workbook was read, and which were not. Only of the file itself can a sheet be chosen. */
const sheetChoice = z.strictObject({
  role: z.enum(['file', 'lookup']),
  file: z.string(),
  read: z.string(),
  unread: z.array(z.string()),
})
export type SheetChoice = z.infer<typeof sheetChoice>

/** How a file's columns map to our fields: the content of `mapping.json`. */
export const mappingSchema = z.strictObject({
  /** Names the JSON schema, by which an editor completes the file. */
  $schema: z.string().optional(),
  columns: z
    .record(z.string(), z.string().nullable())
    .optional()
    .meta({ help: 'the column of the file: our field; null ignores the column' }),
  set: z.record(z.string(), z.string()).optional().meta({ help: 'fields with the same value in every row' }),
  lookups: z
    .record(fieldName, z.string(), {
      error: ({ code }) =>
        code === 'invalid_key' ? 'is not the name of a field, as "supplier" or "lines.1.name"' : undefined,
    })
    .optional()
    .meta({ help: 'fields whose cells are translated by a file with two columns, theirs and ours' }),
  ...readingFields,
  /** Written by an import into its copy: the sheets of its workbooks. */
  sheets: z.array(sheetChoice).optional(),
})
export type Mapping = Omit<z.infer<typeof mappingSchema>, '$schema'>

/** @throws {InvalidMapping} with every problem */
export function parseMapping(value: unknown, name = 'the mapping'): Mapping {
  const parsed = mappingSchema.safeParse(value, { error: wrongType })
  if (parsed.success) {
    const { $schema: _, ...mapping } = parsed.data
    return mapping
  }
  // Names below the mapping's own fields come from the user's file, as do the names of unknown fields.
  const fields = [...new Set(parsed.error.issues.map(({ path }) => String(path[0] ?? 'it')))].join(', ')
  throw new InvalidMapping(
    say`${name} cannot be used: ${quote(toProblems(parsed.error, 'it'), `${fields} is not as docs/imports.md describes it`)}.`,
  )
}

/**
 * Reads a `mapping.json`. Paths of its lookup files are relative to its folder.
 * @throws {InvalidMapping}
 * @throws {InvalidFile} it is too large
 */
export async function readMapping(path: string): Promise<Mapping> {
  await refuseLarge(path, 'mapping')
  const mapping = parseMapping(parseJson(decode(await readFile(path), path), path), path)
  if (mapping.lookups === undefined) return mapping
  const lookups = Object.entries(mapping.lookups).map(([field, file]): [string, string] => [
    field,
    resolve(dirname(path), file),
  ])
  return { ...mapping, lookups: Object.fromEntries(lookups) }
}

/** Without a byte order mark. */
function decode(bytes: Buffer, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new InvalidMapping(`${path} is not UTF-8. Save it as UTF-8.`, { cause })
  }
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // The parser's message quotes the file.
    const place = / \(line \d+ column \d+\)/.exec(String(cause))?.[0] ?? ''
    throw new InvalidMapping(`${path} is not valid JSON${place}.`, { cause })
  }
}

/**
 * A mapping from the options of a command line or the input of an import.
 *
 * @param options the options of reading, which override those of `base`, a stored mapping
 * @throws {InvalidMapping}
 */
export function toMapping(
  options: { readonly [name in ReadingName]?: unknown } & {
    base?: Mapping
    /** `Folio=number`; `Comentario=` ignores that column. */
    map?: readonly string[]
    /** `document=7` */
    set?: readonly string[]
    /** `supplier=suppliers.csv` */
    lookup?: readonly string[]
  },
): Mapping {
  const { base = {}, map = [], set = [], lookup = [] } = options
  // A locale on the command line overrides a stored mark or order.
  const stored = options.locale === undefined ? base : { ...base, decimal: undefined, dates: undefined }
  const columns = Object.entries(pairs('--map', map)).map(([theirs, ours]) => [theirs, ours || null])
  return parseMapping({
    ...stored,
    ...readingOf(options),
    columns: { ...base.columns, ...Object.fromEntries(columns) },
    set: { ...base.set, ...pairs('--set', set) },
    lookups: { ...base.lookups, ...pairs('--lookup', lookup) },
  })
}

/** Splits a pair at its last `=` for `--map` (column names may contain one), otherwise at its first. */
function pairs(option: '--map' | '--set' | '--lookup', texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text): [string, string] => {
      const at = option === '--map' ? text.lastIndexOf('=') : text.indexOf('=')
      if (at < 1)
        throw new InvalidMapping(say`${option} ${quote(text)} is not a pair such as ${examples[option]}.`)
      return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
    }),
  )
}

const examples = {
  '--map': '"Folio=number"',
  '--set': 'document=7',
  '--lookup': 'supplier=suppliers.csv',
} as const

/** The conventions of a mapping: its decimal mark and date order override its locale. */
export function conventionsIn({ locale, decimal, dates }: Mapping): Conventions {
  const own = { ...(decimal !== undefined && { decimal }), ...(dates !== undefined && { dates }) }
  return locale === undefined ? own : { ...conventionsOf(locale), ...own }
}
