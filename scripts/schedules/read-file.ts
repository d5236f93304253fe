import { readFile } from 'node:fs/promises'
import { isMap, isScalar, LineCounter, parseDocument, type Document, type Node } from 'yaml'
import type { z } from 'zod'
import { nearestName } from '../../core/tables/nearest-name.ts'
import { checkRunInput } from '../../core/schedules/inputs.ts'
import { cronProblem } from './cron.ts'
import { entrySchema, fileSchema, toDefinition, type Definition } from './definition.ts'
import { isSystemError } from '../../core/storage/system-errors.ts'

type Path = readonly (string | number | symbol)[]

interface Problem {
  path: Path
  message: string
  /** Whether the field's name is wrong, not its value. */
  isKey?: true
}

/** The schedules file is invalid: lists every problem with its line. Nothing was applied. */
export class SchedulesFileError extends Error {
  override name = 'SchedulesFileError' as const
  readonly exitCode = 2
  readonly hint = 'Nothing was applied. docs/schedules.md describes every field.'
  readonly problems: readonly string[]
  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(problems.join(' '), options)
    this.problems = problems
  }
}

/**
 * Reads and checks the whole file and returns the schedules by name.
 *
 * @throws {SchedulesFileError} with every problem of the file
 */
export async function readSchedulesFile(path: string): Promise<Map<string, Definition>> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    const isMissing = isSystemError(cause, 'ENOENT')
    const reason = isMissing ? 'does not exist' : `cannot be read: ${String(cause)}`
    throw new SchedulesFileError([`${path} ${reason}.`], { cause })
  })
  return parseSchedules({ text, path })
}

/** In characters; enough for thousands of schedules. */
const longestText = 1024 ** 2
/** Limits aliases, because each is checked as if its value were written out. */
const mostAliases = 100

/** @throws {SchedulesFileError} with every problem of the file */
export function parseSchedules({ text, path }: { text: string; path: string }): Map<string, Definition> {
  const lines = new LineCounter()
  if (text.length > longestText) throw new SchedulesFileError([`${path} is larger than 1 MB. Split it.`])
  const document = parseYaml({ text, path, lines })
  const [broken] = document.errors
  if (broken !== undefined)
    throw toYamlError({ path, line: lines.linePos(broken.pos[0]).line, error: broken })
  const content = toContent({ document, path })
  const problems = problemsOf(content)
  if (problems.length > 0) {
    throw new SchedulesFileError(
      problems
        .map((problem) => ({ ...problem, line: lineOf({ document, lines, problem }) }))
        .toSorted((a, b) => a.line - b.line)
        .map(
          ({ line, message, path: at }) =>
            `${path}, line ${line}: ${[at.map(String).join('.'), message].filter(Boolean).join(': ')}.`,
        ),
    )
  }
  const { schedules, timezone = 'UTC' } = fileSchema.parse(content)
  return new Map(Object.entries(schedules).map(([name, entry]) => [name, toDefinition(entry, timezone)]))
}

function parseYaml({ text, path, lines }: { text: string; path: string; lines: LineCounter }): Document {
  try {
    return parseDocument(text, { lineCounter: lines })
  } catch (error) {
    // Deeply nested input overflows the recursive parser.
    throw toYamlError({ path, line: 1, error: error as Error })
  }
}

function toContent({ document, path }: { document: Document; path: string }): unknown {
  try {
    return document.toJS({ maxAliasCount: mostAliases }) ?? {}
  } catch (error) {
    if (/alias count/i.test(String(error)))
      throw new SchedulesFileError(
        [`${path} has more than ${mostAliases} aliases (*name). Write the values out.`],
        { cause: error },
      )
    throw toYamlError({ path, line: 1, error: error as Error })
  }
}

function toYamlError(options: { path: string; line: number; error: Error }): SchedulesFileError {
  const { path, line, error } = options
  const reason = error.message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '') ?? ''
  const isStar = /alias/i.test(error.message)
  const more = isStar ? ' Quote a value that begins with *, as in "*/10 * * * *".' : ''
  return new SchedulesFileError([`${path}, line ${line}: not valid YAML: ${reason}.${more}`], {
    cause: error,
  })
}

function problemsOf(content: unknown): Problem[] {
  const parsed = fileSchema.safeParse(content)
  const shape = (path: Path) => Object.keys(path.length >= 2 ? entrySchema.shape : fileSchema.shape)
  const ofForm = parsed.success
    ? []
    : parsed.error.issues.flatMap((issue) => toProblems(issue, shape(issue.path)))
  const { schedules, timezone } = (content ?? {}) as { schedules?: unknown; timezone?: unknown }
  if (typeof schedules !== 'object' || schedules === null) return ofForm
  // Valid entries are checked further, so that one reading lists every problem.
  const entries = Object.entries(schedules).flatMap(([name, entry]) => {
    const whole = entrySchema.safeParse(entry)
    return whole.success ? checkEntry({ path: ['schedules', name], entry: whole.data, zone: timezone }) : []
  })
  return [...ofForm, ...entries]
}

type Entry = z.output<typeof entrySchema>

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
