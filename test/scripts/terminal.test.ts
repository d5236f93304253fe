import { PassThrough } from 'node:stream'
import { WriteStream } from 'node:tty'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { toFailure } from '../../scripts/terminal/failures.ts'
import { formatCount, formatDuration, formatTable } from '../../core/runs/view/format.ts'
import { createBoard } from '../../scripts/terminal/progress.ts'
import { type Color, createTerminal } from '../../scripts/terminal/terminal.ts'

/** A stream that says it is a terminal, and what was written to it. */
function screen() {
  let text = ''
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns: 100, rows: 20 })
  stream.setEncoding('utf8').on('data', (part: string) => (text += part))
  return { stream, text: () => text }
}

describe('bars', () => {
  it('move at the rate of what is done, with the time and a note', async () => {
    const { stream, text } = screen()
    const board = createBoard({ stream, as: 'bars' })
    const bar = board.start({ name: 'customers', unit: 'records' })
    bar.update({ done: 2_500, total: 10_000, note: '25 pages' })
    await expect.poll(text).toMatch(/█{5}░{15} customers: 2,500 of 10,000 records, \d+ ms, 25 pages/)
    bar.update({ done: 10_000, total: 10_000 })
    await expect.poll(text).toMatch(/█{20} customers: 10,000 of 10,000 records/)
    bar.end()
    // The bar is gone.
    expect(text().endsWith('\u001b[1A\u001b[J')).toBe(true)
    board.write('done')
    expect(text().endsWith('done\n')).toBe(true)
  })
})

describe('lines', () => {
  it('come every few seconds while there is news, and once at the end', () => {
    vi.useFakeTimers()
    try {
      const stream = new PassThrough({ encoding: 'utf8' })
      const said = () => String(stream.read() ?? '')
      const board = createBoard({ stream, as: 'lines' })
      const bar = board.start({ name: 'plans', unit: 'records' })
      bar.update({ done: 10 })
      bar.update({ done: 20 })
      expect(said()).toBe('')
      vi.advanceTimersByTime(5_000)
      expect(said()).toBe('plans: 20 records, 5.0 s\n')
      vi.advanceTimersByTime(5_000)
      expect(said()).toBe('')
      bar.update({ done: 30, note: '' })
      bar.end()
      bar.end()
      expect(said()).toBe('plans: 30 records, 10 s\n')
      const task = board.start({ name: 'Building', unit: '' })
      vi.advanceTimersByTime(5_000)
      task.end()
      task.end()
      expect(said()).toBe('Building: 5.0 s\n')
      board.close()
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('a failure', () => {
  it('is one line, whatever was thrown', () => {
    expect(toFailure('a word')).toMatchObject({ message: 'a word', exitCode: 1, hint: null })
    const refused = new AggregateError([
      new Error('connect ECONNREFUSED ::1:1'),
      new Error('connect ECONNREFUSED 127.0.0.1:1'),
    ])
    expect(toFailure(refused).message).toBe('connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1')
    expect(toFailure(new RangeError('')).message).toBe('RangeError')
  })
})

describe('numbers for people', () => {
  it('are grouped, and times have two units at most', () => {
    expect(formatCount(1_234_567)).toBe('1,234,567')
    const times = [
      0, 949, 950, 9_949, 9_950, 59_499, 59_500, 125_000, 3_599_499, 3_599_500, 3_840_000, 90_000_000,
    ]
    expect(times.map(formatDuration).join(', ')).toBe(
      '0 ms, 949 ms, 0.9 s, 9.9 s, 10 s, 59 s, 1 min 0 s, 2 min 5 s, 59 min 59 s, 1 h 0 min, 1 h 4 min, 25 h 0 min',
    )
  })

  it('stand under each other in a table, to the right', () => {
    const table = formatTable({
      head: ['resource', 'records', 'verdict'],
      rows: [
        ['customers', 12_345, 'proven'],
        ['plans', 7, 'unproven'],
      ],
    })
    expect(table).toBe(
      'resource   records  verdict\ncustomers   12,345  proven\nplans            7  unproven',
    )
  })
})

describe('text of others', () => {
  // Erase the screen, a title, a C1 introducer, overwrite the line, text that runs backwards, a line separator.
  const hostile = 'a\u001b[2J\u001b]0;t\u0007\u009b31m\rb\u202e\u2066c\u2028\u007f'
  const shown = String.raw`a\u001b[2J\u001b]0;t\u0007\u009b31m\u000db\u202e\u2066c\u2028\u007f`

  function terminalOf({ json = false, isTTY = true }: { json?: boolean; isTTY?: boolean }) {
    const err = screen()
    const out = screen()
    const stdin = Object.assign(new PassThrough(), { isTTY }) as unknown as NodeJS.ReadStream
    const stderr = Object.assign(err.stream, { isTTY })
    const terminal = createTerminal({ color: 'never', json, debug: true, stdin, stdout: out.stream, stderr })
    return { terminal, stdin, text: () => err.text() + out.text(), out }
  }

  it.each([true, false])(
    'cannot speak to the terminal, whichever way it gets there (a person there: %s)',
    async (isTTY) => {
      const { terminal, stdin, text } = terminalOf({ isTTY })
      terminal.identity({ workspace: hostile, testMode: true })
      terminal.note(hostile)
      terminal.note(formatTable({ head: ['by', hostile], rows: [[hostile, 900]] }))
      terminal.result({ document: {}, text: hostile })
      const answer = terminal.ask(`Resume 900 ${hostile}? [y/N] `)
      stdin.push('y\n')
      expect(await answer).toBe('y')
      const failed = Object.assign(new Error(hostile), { hint: hostile, stack: hostile })
      expect(terminal.failure(failed)).toBe(1)
      expect(text()).not.toMatch(/[^\P{Cc}\n]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u)
      expect(text().split(shown)).toHaveLength(10)
    },
  )

  it('cannot speak through a bar that moves', async () => {
    const { terminal, text } = terminalOf({})
    terminal.task(hostile)
    const bar = terminal.progress({ name: hostile, unit: hostile })
    bar.update({ done: 1, total: 2, note: hostile })
    await expect.poll(() => text().split(shown).length).toBeGreaterThan(4)
    terminal.close()
    // The bars' own escapes are the only ones.
    expect(text()).not.toContain('\u001b[2J')
    expect(text()).not.toMatch(/[\u0080-\u009f\u202e]/)
  })

  it('is the same in a JSON document, and cannot speak there either', () => {
    const { terminal, out } = terminalOf({ json: true })
    terminal.result({ document: { said: hostile }, text: '' })
    expect(out.text()).not.toMatch(/[^\P{Cc}\n]|\u202e/u)
    expect(JSON.parse(out.text())).toEqual({ said: hostile })
  })

  it('makes no line of a table of its own', () => {
    expect(formatTable({ head: ['by'], rows: [['a\nto resume  0']] })).toBe('by\na\\u000ato resume  0')
  })
})

it('names a file below the folder of the caller by its relative path, except for programs', () => {
  const said = (json: boolean) => {
    const [stdout, stderr] = [screen(), screen()]
    const streams = { stdout: stdout.stream, stderr: stderr.stream }
    const terminal = createTerminal({ color: 'never', json, debug: false, ...streams })
    const here = process.env['INIT_CWD'] ?? process.cwd()
    const text = `open '${here}/data/a b.csv', not /other${here}/data or ${here}-2/data`
    terminal.note(text)
    terminal.failure(new Error(`${here}/data is locked`))
    terminal.result({ document: { file: `${here}/data` }, text })
    terminal.close()
    return { here, stdout: stdout.text(), stderr: stderr.text() }
  }
  const { here, stdout, stderr } = said(false)
  const text = `open 'data/a b.csv', not /other${here}/data or ${here}-2/data\n`
  expect(stdout).toBe(text)
  expect(stderr).toContain(text)
  expect(stderr).toContain('error: data is locked\n')
  expect(said(true).stdout).toContain(JSON.stringify({ file: `${here}/data` }))
})

describe('colours', () => {
  beforeEach(() => {
    for (const name of ['FORCE_COLOR', 'NO_COLOR', 'NODE_DISABLE_COLORS']) vi.stubEnv(name, undefined)
  })
  afterEach(() => void vi.unstubAllEnvs())

  const shown = (color: Color, { isTTY = true } = {}) => {
    const { stream, text } = screen()
    // Of the environment only NO_COLOR: where the tests run (CI, TMUX, TERM) must not matter.
    const getColorDepth = () =>
      WriteStream.prototype.getColorDepth({ TERM: 'xterm-256color', NO_COLOR: process.env['NO_COLOR'] })
    const out = Object.assign(stream, { isTTY, getColorDepth })
    const terminal = createTerminal({ json: false, debug: false, color, stdout: out, stderr: out })
    terminal.result({
      document: {},
      text: 'import-1: 2 of 3 done\nproven, unproven\nsee rejected.csv and --failed, 1 rejected, 3 need a person.',
    })
    terminal.close()
    return text()
  }
  const plain =
    'import-1: 2 of 3 done\nproven, unproven\nsee rejected.csv and --failed, 1 rejected, 3 need a person.\n'

  it('show what is proven, in doubt or rejected on a terminal, and no file or option', () => {
    const [bold, green, amber, red] = ([1, 32, 33, 31] as const).map((code) => `\u001B[${code}m`)
    const end = '\u001B[39m'
    expect(shown('auto')).toBe(
      `${bold}import-1: 2 of 3 done\u001B[22m\n${green}proven${end}, ${amber}unproven${end}\nsee rejected.csv and --failed, 1 ${red}rejected${end}, 3 ${amber}need a person${end}.\n`,
    )
  })

  it('need a terminal without NO_COLOR, unless --color says always or never', () => {
    expect(shown('auto', { isTTY: false })).toBe(plain)
    expect(shown('always', { isTTY: false })).toContain('\u001B[32mproven')
    expect(shown('never')).toBe(plain)
    vi.stubEnv('NO_COLOR', '1')
    expect(shown('auto')).toBe(plain)
  })
})
