import { z } from 'zod'
import { Cron } from 'croner'
import { readFile } from 'node:fs/promises'
import { type Document, isMap, isScalar, LineCounter, type Node, parseDocument } from 'yaml'
import { parseDuration, wrongType } from '../../core/runs/inputs.ts'
import { checkRunInput, schedulableNames } from '../../core/schedules/inputs.ts'
import { nearestName } from '../../core/tables/nearest-name.ts'
import { isSystemError } from '../../core/storage/system-errors.ts'
import { SettingsError } from '../../worker/settings/environment.ts'

const anExample = 'not a duration; write 90s, 15m, 12h or 2d'

const duration = z
  .string({ error: anExample })
  .refine((text) => (parseDuration(text) ?? 0) >= 1_000, anExample)

/** Requires the exact IANA spelling, because Temporal accepts no other. */
const timezone = z.string().refine(isZone, {
  error: 'not a time zone; use a name like America/Santiago, America/Bogota, America/Mexico_City or UTC',
})

function isZone(name: string): boolean {
  if (!/^(UTC|[A-Z][A-Za-z_]+(\/[A-Z][A-Za-z0-9_+-]+)+)$/.test(name)) return false
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions()
    return timeZone.toLowerCase() !== name.toLowerCase() || timeZone === name
  } catch {
    return false
  }
}

const cron = z.union([z.string(), z.array(z.string()).min(1)], {
  error: 'not a cron expression; write it in quotes, as in "30 2 * * *"',
})

export const scheduleSchema = z.strictObject({
  workflow: z.enum(schedulableNames).meta({ help: 'what runs' }),
  input: z
    .record(z.string(), z.unknown())
    .default({})
    .meta({ help: "the workflow's input, as in the Temporal UI", otherwise: '{}' }),
  cron: cron
    .transform((text) => [text].flat())
    .optional()
    .meta({
      help: 'minute, hour, day of the month, month, day of the week (both days must match); a list of expressions means all of them',
    }),
  every: duration.optional().meta({ help: 'in place of `cron`, an interval such as 90s, 15m, 12h or 2d' }),
  timezone: timezone
    .optional()
    .meta({ help: 'the IANA time zone in which `cron` is read', otherwise: "the file's" }),
  jitter: duration
    .optional()
    .meta({ help: 'delays each run by a random time up to this, so that not all start at once' }),
  catchUp: duration
    .refine((text) => (parseDuration(text) ?? 0) >= 10_000, 'too short; the minimum is 10s')
    .default('12h')
    .meta({ help: 'how late a run may still start after Temporal was down' }),
  pauseAfterFailures: z
    .int()
    .min(1)
    .max(10)
    .default(3)
    .meta({ help: 'this many failed runs in a row pause the schedule; its note says why' }),
  provenWithin: duration.optional().meta({
    help: 'of `exportData`: a proven export is due this long after each scheduled time',
    otherwise: 'not watched',
  }),
  paused: z.boolean().default(false).meta({
    help: 'only the Trigger button or `schedule trigger` starts it; it then needs neither `cron` nor `every`',
  }),
})

export const schedulesSchema = z.strictObject({
  timezone: timezone.optional().meta({ help: 'for every schedule without its own' }),
  schedules: z.record(
    z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'not a plain name; use letters, digits, - and _'),
    scheduleSchema,
    { error: ({ input }) => (input === undefined ? 'missing' : undefined) },
  ),
})
/** A schedule as written in the file. */
export type ScheduleEntry = z.input<typeof scheduleSchema>

/** A schedule with all defaults. Stored in the schedule's memo, so that the next `apply` can show what changes. */
export type Definition = z.output<typeof scheduleSchema> & { timezone: string }

export function toDefinition(entry: ScheduleEntry, zone: string): Definition {
  const { timezone = zone, ...more } = scheduleSchema.parse(entry)
  return { ...more, timezone }
}

const help =
  'a cron expression has five fields: minute 0-59, hour 0-23, day of the month 1-31, month 1-12 or JAN-DEC, day of the ' +
  'week 0-7 or SUN-SAT; each is *, numbers, ranges (1-5), lists (1,15) or steps (*/10)'

/** As in Temporal, day of the month and day of the week must both match. */
const dialect = { mode: '5-part', domAndDow: true, paused: true } as const

/** Explains what is wrong with a cron expression; undefined if Temporal accepts it and it matches some day. */
export function cronProblem(text: string): string | undefined {
  // Other dialects support more than this; Temporal does not.
  if (!/^[\d\s*,/A-Za-z-]+$/.test(text) || /\d[LW]|\bL\b|\bW\b/i.test(text)) return help
  try {
    const cron = new Cron(text, { ...dialect, timezone: 'UTC' })
    return cron.nextRun() === null ? 'names a day that never comes' : undefined
  } catch {
    return help
  }
}

type Path = readonly (string | number | symbol)[]

interface Problem {
  path: Path
  message: string
  /** Whether the field's name is wrong, not its value. */
  isKey?: true
}

const toError = (problems: readonly string[], options: ErrorOptions = {}) =>
  new SettingsError(problems, {
    ...options,
    hint: 'Nothing was applied. docs/schedules.md describes every field.',
  })

/**
 * Reads and checks the whole file and returns the schedules by name.
 *
 * @throws {SettingsError} with every problem of the file
 */
export async function readSchedulesFile(path: string): Promise<Map<string, Definition>> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    const isMissing = isSystemError(cause, 'ENOENT')
    const reason = isMissing ? 'does not exist' : `cannot be read: ${String(cause)}`
    throw toError([`${path} ${reason}.`], { cause })
  })
  return parseSchedules({ text, path })
}

/** In characters; enough for thousands of schedules. */
const longestText = 1024 ** 2
/** Limits aliases, because each is checked as if its value were written out. */
const mostAliases = 100

/** @throws {SettingsError} with every problem of the file */
export function parseSchedules({ text, path }: { text: string; path: string }): Map<string, Definition> {
  const lines = new LineCounter()
  if (text.length > longestText) throw toError([`${path} is larger than 1 MB. Split it.`])
  const { document, content } = readYaml({ text, path, lines })
  const problems = problemsOf(content)
  if (problems.length > 0) {
    throw toError(
      problems
        .map((problem) => ({ ...problem, line: lineOf({ document, lines, problem }) }))
        .toSorted((a, b) => a.line - b.line)
        .map(
          ({ line, message, path: at }) =>
            `${path}, line ${line}: ${[at.map(String).join('.'), message].filter(Boolean).join(': ')}.`,
        ),
    )
  }
  const { schedules, timezone = 'UTC' } = schedulesSchema.parse(content)
  return new Map(Object.entries(schedules).map(([name, entry]) => [name, toDefinition(entry, timezone)]))
}

/** The document, for the lines of its fields, and its content. @throws {SettingsError} it is not YAML */
function readYaml({ text, path, lines }: { text: string; path: string; lines: LineCounter }) {
  let line = 1
  try {
    // Deeply nested input overflows the recursive parser.
    const document = parseDocument(text, { lineCounter: lines })
    const [broken] = document.errors
    if (broken !== undefined) {
      line = lines.linePos(broken.pos[0]).line
      throw broken
    }
    return { document, content: (document.toJS({ maxAliasCount: mostAliases }) ?? {}) as unknown }
  } catch (cause) {
    const { message } = cause as Error
    if (/alias count/i.test(message))
      throw toError([`${path} has more than ${mostAliases} aliases (*name). Write the values out.`], {
        cause,
      })
    const reason = message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '') ?? ''
    const more = /alias/i.test(message) ? ' Quote a value that begins with *, as in "*/10 * * * *".' : ''
    throw toError([`${path}, line ${line}: not valid YAML: ${reason}.${more}`], { cause })
  }
}

function problemsOf(content: unknown): Problem[] {
  const parsed = schedulesSchema.safeParse(content, { error: wrongType })
  const shape = (path: Path) => Object.keys(path.length >= 2 ? scheduleSchema.shape : schedulesSchema.shape)
  const ofForm = parsed.success
    ? []
    : parsed.error.issues.flatMap((issue) => toProblems(issue, shape(issue.path)))
  const { schedules, timezone } = (content ?? {}) as { schedules?: unknown; timezone?: unknown }
  if (typeof schedules !== 'object' || schedules === null) return ofForm
  // Valid entries are checked further, so that one reading lists every problem.
  const entries = Object.entries(schedules).flatMap(([name, entry]) => {
    const whole = scheduleSchema.safeParse(entry)
    return whole.success ? checkEntry({ path: ['schedules', name], entry: whole.data, zone: timezone }) : []
  })
  return [...ofForm, ...entries]
}

type Entry = z.output<typeof scheduleSchema>

function checkEntry({ path, entry, zone }: { path: Path; entry: Entry; zone: unknown }): Problem[] {
  const { workflow, input, cron, every, timezone, paused, provenWithin } = entry
  const problems: Problem[] = []
  if (cron !== undefined && every !== undefined)
    problems.push({ path: [...path, 'every'], message: 'not together with cron; keep one of the two' })
  if (cron === undefined && every === undefined && !paused)
    problems.push({ path, message: 'needs cron or every, or paused: true if only people start it' })
  if (cron !== undefined && timezone === undefined && zone === undefined)
    problems.push({
      path,
      message: 'has no time zone; add timezone: America/Santiago here or at the top of the file',
    })
  for (const text of cron ?? []) {
    const problem = cronProblem(text)
    if (problem !== undefined) problems.push({ path: [...path, 'cron'], message: `"${text}": ${problem}` })
  }
  if (provenWithin !== undefined && workflow !== 'exportData')
    problems.push({ path: [...path, 'provenWithin'], message: 'for schedules of exportData only' })
  const { issues, message, fields } = checkRunInput({ workflow, input })
  const at = [...path, 'input']
  for (const issue of issues) problems.push(...toProblems({ ...issue, path: [...at, ...issue.path] }, fields))
  if (message !== undefined) problems.push({ path: at, message: message.replace(/\.$/, '') })
  return problems
}

function toProblems(issue: z.core.$ZodIssue, fields: readonly string[]): Problem[] {
  const { path } = issue
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => {
      const near = nearestName(key, fields)
      const meant = near === undefined ? '' : `did you mean ${near}? `
      const message = `not a field; ${meant}The fields are ${fields.join(', ')}`
      return { path: [...path, key], message, isKey: true }
    })
  if (issue.code === 'invalid_key')
    return [{ path, message: issue.issues[0]?.message ?? issue.message, isKey: true }]
  return [{ path, message: issue.message }]
}

/** The line of a field; for a missing field, of the object that lacks it. */
function lineOf(of: { document: Document; lines: LineCounter; problem: Problem }): number {
  const { document, lines, problem } = of
  for (let length = problem.path.length; length > 0; length -= 1) {
    const path = problem.path.slice(0, length)
    const parent = document.getIn(path.slice(0, -1), true)
    const pair = isMap(parent)
      ? parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1))
      : undefined
    const key = pair?.key as Node | undefined
    const value = document.getIn(path, true) as Node | undefined
    const node = problem.isKey === true || !isScalar(value) ? (key ?? value) : value
    if (node?.range) return lines.linePos(node.range[0]).line
  }
  return 1
}
