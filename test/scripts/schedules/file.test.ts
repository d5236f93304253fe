import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { cronProblem, parseSchedules, readSchedulesFile } from '../../../scripts/schedules/file.ts'
import { SettingsError } from '../../../worker/settings/environment.ts'

const example = fileURLToPath(new URL('../../../docs/schedules.example.yaml', import.meta.url))

function problemsOf(text: string): readonly string[] {
  try {
    parseSchedules({ text, path: 's.yaml' })
  } catch (error) {
    if (error instanceof SettingsError) return error.problems
    throw error
  }
  return []
}

/** A file of one schedule with these settings, from the fourth line on. */
const nightly = (...lines: string[]) =>
  `timezone: America/Santiago\nschedules:\n  nightly:\n${lines.map((line) => `    ${line}\n`).join('')}`
/** A file of one export with these settings, from the fifth line on. */
const exporting = (...lines: string[]) => nightly('workflow: exportData', ...lines)

describe('a schedules file', () => {
  test('of the documentation is right, and every default is filled in', async () => {
    const schedules = await readSchedulesFile(example)
    expect(schedules.get('export-nightly')).toEqual({
      workflow: 'exportData',
      input: { to: ['csv', 'duckdb'] },
      cron: ['30 2 * * *'],
      timezone: 'America/Santiago',
      jitter: '5m',
      catchUp: '12h',
      pauseAfterFailures: 3,
      provenWithin: '4h',
      paused: false,
    })
    expect([...schedules.keys()].filter((name) => schedules.get(name)?.paused)).toEqual([
      'recover-preview',
      'recover-gateway',
    ])
  })

  test.each([
    [
      'a field that is none',
      exporting('crom: 30 2 * * *', 'every: 1h'),
      5,
      /crom: not a field; did you mean cron\? The fields are workflow, input, cron/,
    ],
    [
      'a field of the file that is none',
      `zone: UTC\nschedules: {}\n`,
      1,
      /zone: not a field; .*The fields are timezone, schedules/,
    ],
    ['a wrong cron', exporting('cron: 61 2 * * *'), 5, /"61 2 \* \* \*": a cron expression has five fields/],
    ['a day that never comes', exporting('cron: 0 2 30 2 *'), 5, /names a day that never comes/],
    [
      'a cron beginning with a bare star',
      exporting('cron: */5 * * * *'),
      5,
      /Quote a value that begins with \*/,
    ],
    [
      'a missing zone',
      `schedules:\n  nightly:\n    workflow: exportData\n    cron: 30 2 * * *\n`,
      2,
      /schedules\.nightly: has no time zone; add timezone: America\/Santiago/,
    ],
    [
      'a zone that is none',
      exporting('timezone: America/Santigo', 'every: 1h'),
      5,
      /not a time zone; use a name like/,
    ],
    [
      'a zone in letters that Temporal does not know',
      `timezone: america/santiago\nschedules: {}\n`,
      1,
      /not a time zone/,
    ],
    [
      'a text for a list in the input',
      exporting('every: 1h', 'input:', '  resources: plans'),
      7,
      /schedules\.nightly\.input\.resources: takes a list, not a text\.$/,
    ],
    ['no workflow', nightly('every: 1h'), 3, /schedules\.nightly\.workflow: Invalid option: expected one of/],
    [
      'an input that the workflow does not take',
      exporting('every: 1h', 'input:', '  resources: [plans]', '  too: [csv]'),
      8,
      /input\.too: not a field; did you mean to\?/,
    ],
    [
      'a wrong value in the input',
      exporting('every: 1h', 'input:', '  to:', '    - csv', '    - exel'),
      9,
      /input\.to\.1: Invalid option: expected one of "csv"\|/,
    ],
    [
      'a filter that a list does not have',
      exporting('every: 1h', 'input: {resources: [plans], filters: {nonsense: x}}'),
      6,
      /nonsense/,
    ],
    ['neither cron nor every', exporting(), 3, /nightly: needs cron or every/],
    ['both', exporting('cron: 30 2 * * *', 'every: 1h'), 6, /every: not together with cron/],
    ['a number for a length of time', exporting('every: 90'), 5, /every: not a duration; write 90s/],
    [
      'a proof expected of what proves nothing',
      nightly('workflow: watchSchedules', 'every: 1h', 'provenWithin: 2h'),
      6,
      /for schedules of exportData only/,
    ],
    ['no schedules', `timezone: UTC\n`, 1, /: schedules: missing/],
  ])('with %s is refused with its line and what is allowed', (_, text, line, says) => {
    const problems = problemsOf(text)
    expect(problems[0]).toMatch(says)
    expect(problems[0]).toMatch(new RegExp(`^s\\.yaml, line ${line}: `))
  })

  test('tells all that is wrong at once, in the order of its lines', () => {
    const b = 'b:\n    workflow: watchSchedules\n    evry: 1h\n'
    const c = 'c:\n    workflow: exportData\n    every: 1h\n    input: {mode: hourly}\n'
    const text = `${exporting('cron: 61 2 * * *')}  ${b}  ${c}`
    expect(problemsOf(text).map((problem) => /line \d+/.exec(problem)?.[0])).toEqual([
      'line 5',
      'line 8',
      'line 12',
    ])
  })
})

describe('a cron expression', () => {
  test.each([
    '0 0 * * 7',
    '0 0 * * mon-fri',
    '0 0 * FEB MON',
    '  00   02 * * *  ',
    '1-5,10-20/2 3 1 * *',
    '*/40 3 1 * *',
  ])('%j is accepted', (cron) => {
    expect(cronProblem(cron)).toBeUndefined()
  })

  test('of a leap day is due in four years, and one of a day that never comes is refused', () => {
    expect(cronProblem('0 0 29 2 *')).toBeUndefined()
    for (const never of ['0 0 30 2 *', '0 0 30 2 FRI', '0 0 31 4 *', '0 0 31 2,4,6,9,11 *'])
      expect(cronProblem(never)).toBe('names a day that never comes')
  })

  test.each([
    [
      'a number out of its range',
      ['60 * * * *', '0 24 * * *', '0 0 0 * *', '0 0 32 * *', '0 0 * 13 *', '0 0 * * 8'],
    ],
    ['what is not a number', ['-1 * * * *', '1e1 * * * *', '0,, * * * *', '0 2 * * LUN', 'JAN 0 * * *']],
    [
      'a step or a range of nothing',
      ['*/0 * * * *', '22-2 * * * *', '0 22-2 * * *', '0 0 * * FRI-MON', '*/90 * * * *', '5/10 * * * *'],
    ],
    [
      'another dialect',
      ['0 0 L * *', '0 0 15W * *', '0 0 * * 5#2', '0 0 ? * *', '@daily', 'CRON_TZ=UTC 0 0 * * *'],
    ],
    ['another number of fields', ['', '30 2 * *', '0 30 2 * * *']],
  ])('with %s is refused with what one is', (_, crons) => {
    const cron = expect.stringMatching(/^a cron expression has five fields/)
    expect(crons.map(cronProblem)).toEqual(crons.map(() => cron))
  })
})

test('a file that grows when it is read, or is larger than any that a person writes, is refused with a sentence', async () => {
  const levels = Array.from(
    { length: 9 },
    (_, at) => `x${at + 1}: &x${at + 1} [${Array.from({ length: 9 }, () => `*x${at}`).join(', ')}]`,
  )
  const bomb = `x0: &x0 [a]\n${levels.join('\n')}\nschedules: *x9\n`
  expect(() => parseSchedules({ text: bomb, path: 'schedules.yaml' })).toThrow(
    'schedules.yaml has more than 100 aliases (*name). Write the values out.',
  )
  // Each alias is small: what they make together is not.
  const wide = `x: &x [${'a, '.repeat(1_000)}]\nschedules: {${Array.from({ length: 1_000 }, (_, at) => `s${at}: *x`).join(', ')}}\n`
  expect(() => parseSchedules({ text: wide, path: 'schedules.yaml' })).toThrow('more than 100 aliases')
  const deep = `schedules: ${'['.repeat(10_000)}`
  expect(() => parseSchedules({ text: deep, path: 'schedules.yaml' })).toThrow(SettingsError)
  const large = `# ${'x'.repeat(1024 ** 2)}\n`
  expect(() => parseSchedules({ text: large, path: 'schedules.yaml' })).toThrow(
    /^schedules\.yaml is larger than 1 MB/,
  )
})
