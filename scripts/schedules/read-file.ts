import { readFile } from 'node:fs/promises'
import { isMap, isScalar, LineCounter, parseDocument, type Document, type Node } from 'yaml'
import type { z } from 'zod'
import { nearestName } from '../../core/tables/nearest-name.ts'
import { checkRunInput } from '../../core/schedules/inputs.ts'
import { wrongCron } from './cron.ts'
import { entrySchema, fileSchema, toDefinition, type Definition, type ScheduleEntry } from './definition.ts'

type Path = readonly (string | number | symbol)[]

interface Problem {
  path: Path
  says: string
  /** The field's name itself is what is wrong. */
  isKey?: true
}

/** The schedules file can't be used: every problem with its line. Nothing was applied. */
export class SchedulesFileError extends Error {
  override name = 'SchedulesFileError' as const
  readonly exitCode = 2
  readonly hint = 'Nothing was applied. docs/schedules.md has every field.'
  readonly problems: readonly string[]
  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(problems.join(' '), options)
    this.problems = problems
  }
}

/** Reads and checks the whole file: each schedule with its name, or one error that names everything wrong with it. */
export async function readSchedulesFile(path: string): Promise<Map<string, Definition>> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    const why =
      (cause as NodeJS.ErrnoException).code === 'ENOENT'
        ? 'does not exist'
        : `can't be read: ${String(cause)}`
    throw new SchedulesFileError([`${path} ${why}.`], { cause })
  })
  return parseSchedules({ text, path })
}

/** Thousands of schedules, in characters. */
const longestText = 1024 ** 2
/** What a value may be used again by its name: each use is checked as if it were written out. */
const mostAliases = 100

export function parseSchedules({ text, path }: { text: string; path: string }): Map<string, Definition> {
  const lines = new LineCounter()
  if (text.length > longestText)
    throw new SchedulesFileError([`${path} has more than 1 MB, and at most that is read. Split it.`])
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
          ({ line, says, path: at }) =>
            `${path}, line ${line}: ${[at.map(String).join('.'), says].filter(Boolean).join(' ')}.`,
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
    // Lists within lists within lists: the parser calls itself for each.
    throw toYamlError({ path, line: 1, error: error as Error })
  }
}

function toContent({ document, path }: { document: Document; path: string }): unknown {
  try {
    return document.toJS({ maxAliasCount: mostAliases }) ?? {}
  } catch (error) {
    if (/alias count/i.test(String(error)))
      throw new SchedulesFileError(
        [
          `${path} has more than ${mostAliases} aliases (*name), and at most ${mostAliases} are read. Write the values out.`,
        ],
        { cause: error },
      )
    throw toYamlError({ path, line: 1, error: error as Error })
  }
}

function toYamlError({
  path,
  line,
  error,
}: {
  path: string
  line: number
  error: Error
}): SchedulesFileError {
  const says = error.message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '') ?? ''
  const isStar = /alias/i.test(error.message)
  const more = isStar ? ' A value that begins with * goes into quotes, as in "*/10 * * * *".' : ''
  return new SchedulesFileError([`${path}, line ${line}: is no YAML: ${says}.${more}`], { cause: error })
}

function problemsOf(content: unknown): Problem[] {
  const parsed = fileSchema.safeParse(content)
  const shape = (path: Path) => Object.keys(path.length >= 2 ? entrySchema.shape : fileSchema.shape)
  const ofForm = parsed.success
    ? []
    : parsed.error.issues.flatMap((issue) => toProblems(issue, shape(issue.path)))
  const { schedules, timezone } = (content ?? {}) as { schedules?: unknown; timezone?: unknown }
  if (typeof schedules !== 'object' || schedules === null) return ofForm
  // What is right so far is checked further, so that all is told at once.
  const entries = Object.entries(schedules).flatMap(([name, entry]) => {
    const whole = entrySchema.safeParse(entry)
    return whole.success ? checkEntry({ path: ['schedules', name], entry: whole.data, zone: timezone }) : []
  })
  return [...ofForm, ...entries]
}

function checkEntry({ path, entry, zone }: { path: Path; entry: ScheduleEntry; zone: unknown }): Problem[] {
  const { workflow, input = {}, cron, every, timezone, paused = false, provenWithin } = entry
  const problems: Problem[] = []
  if (cron !== undefined && every !== undefined)
    problems.push({ path: [...path, 'every'], says: 'stands beside cron; keep one of the two' })
  if (cron === undefined && every === undefined && !paused)
    problems.push({
      path,
      says: 'has neither cron nor every; give one, or paused: true for one that people start',
    })
  if (cron !== undefined && timezone === undefined && zone === undefined)
    problems.push({
      path,
      says: 'has no time zone; give timezone: America/Santiago here or at the top of the file',
    })
  for (const text of [cron ?? []].flat()) {
    const wrong = wrongCron(text)
    if (wrong !== undefined) problems.push({ path: [...path, 'cron'], says: `"${text}": ${wrong}` })
  }
  if (provenWithin !== undefined && workflow !== 'exportData')
    problems.push({ path: [...path, 'provenWithin'], says: 'is for schedules of exportData only' })
  const { issues, says, fields } = checkRunInput({ workflow, input })
  const at = [...path, 'input']
  for (const issue of issues) problems.push(...toProblems({ ...issue, path: [...at, ...issue.path] }, fields))
  if (says !== undefined) problems.push({ path: at, says: `: ${says.replace(/\.$/, '')}` })
  return problems
}

function toProblems(issue: z.core.$ZodIssue, fields: readonly string[]): Problem[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => {
      const near = nearestName(key, fields)
      const meant = near === undefined ? '' : `did you mean ${near}? `
      return {
        path: [...issue.path, key],
        says: `is no field; ${meant}the fields are ${fields.join(', ')}`,
        isKey: true,
      }
    })
  if (issue.code === 'invalid_key') {
    const says = issue.issues[0]?.message ?? issue.message
    return [{ path: issue.path, says, isKey: true }]
  }
  if (issue.code === 'invalid_value')
    return [{ path: issue.path, says: `is none of ${issue.values.map(String).join(', ')}` }]
  if (issue.code === 'invalid_type' && issue.input === undefined && issue.message.includes('undefined'))
    return [{ path: issue.path, says: 'is missing' }]
  const says = issue.message.replace(
    /^Invalid input: expected (\w+), received (\w+)$/,
    'is a $2 where a $1 belongs',
  )
  return [{ path: issue.path, says: says.replace(/^Too small: expected /, 'is too small: expected ') }]
}

/** Where the field stands; where it is missing, what it is missing from. */
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
