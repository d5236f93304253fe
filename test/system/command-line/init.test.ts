import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createSandbox } from '../../../sandbox/sandbox.ts'
import { readSchedulesFile } from '../../../scripts/schedules/file.ts'
import { parseEnvFile } from '../../../worker/settings/environment.ts'

const program = fileURLToPath(new URL('../../../scripts/start.js', import.meta.url))
const base = { PATH: process.env['PATH'], HOME: process.env['HOME'], TZ: 'America/Bogota' }

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'init-'))
  onTestFinished(() => rm(folder, { recursive: true }))
})

/** Answers each question, by its first words, as a person at a terminal would, one answer after the other. */
async function init(answers: readonly [question: string, answer: string][]) {
  // `script` gives the program a terminal.
  const words = ['-qec', `${process.execPath} ${program} init`, '/dev/null']
  const child = spawn('script', words, { cwd: folder, env: base })
  onTestFinished(() => void child.kill('SIGKILL'))
  const left = [...answers]
  let screen = ''
  let seen = 0
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text
    const [question, answer] = left[0] ?? []
    const at = question === undefined ? -1 : screen.indexOf(question, seen)
    if (at === -1 || !/[:\]?] $/.test(screen)) return
    seen = screen.length
    left.shift()
    child.stdin.write(`${answer}\r`)
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, screen, unanswered: left }
}

describe.runIf(existsSync('/usr/bin/script'))('connector init', () => {
  test('asks again after a wrong answer, hides the token, and writes settings that work', async () => {
    const sandbox = await createSandbox({ token: 'tok/en#1', workspace: 'acc_1' })
    onTestFinished(() => sandbox.close())
    const { code, screen, unanswered } = await init([
      ['Address', '127.0.0.1:1'],
      ['API token', 'first'],
      ['Workspace', 'acc_1'],
      ['Test data', 'prod'],
      ['Test data', 'live'],
      // Enter gives what was answered before.
      ['Address', ''],
      ['Address', sandbox.url],
      ['API token', ''],
      ['API token', 'tok/en#1'],
      ['Folder', 'billing data'],
      ['Time zone', 'Bogota'],
      ['Time zone', ''],
    ])
    expect(unanswered).toEqual([])
    expect(screen).toContain('"prod" cannot be used here: answer test or live.')
    expect(screen).toMatch(/nothing listens there \(ECONNREFUSED 127\.0\.0\.1:1\)/)
    expect(screen.match(/ECONNREFUSED/g)).toHaveLength(2)
    expect(screen.match(/the service does not accept the token/g)).toHaveLength(2)
    expect(screen).toMatch(/Wrote \.env and schedules\.yaml\.\r\nNext: npx connector check\r\n$/)
    expect(screen).not.toMatch(/first|tok\/en/)
    expect(code).toBe(0)
    const file = join(folder, '.env')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(parseEnvFile(file, await readFile(file, 'utf8'))).toEqual({
      BILLING_BASE_URL: sandbox.url,
      BILLING_TOKEN: 'tok/en#1',
      BILLING_WORKSPACE: 'acc_1',
      BILLING_TEST_MODE: 'false',
      CONNECTOR_DATA_DIR: 'billing data',
    })
    const schedules = join(folder, 'schedules.yaml')
    expect((await readSchedulesFile(schedules)).get('export-nightly')).toMatchObject({
      timezone: 'America/Bogota',
      provenWithin: '4h',
    })
    const [, schema = ''] = /\$schema=(.*)\n/.exec(await readFile(schedules, 'utf8')) ?? []
    expect(JSON.parse(await readFile(schema, 'utf8'))).toHaveProperty('$schema')
  })

  test('writes nothing without an answer', async () => {
    const { code, screen } = await init([['Address', '']])
    const ended = await init([
      ['Address', '127.0.0.1:1'],
      ['API token', 'first'],
      ['Workspace', 'acc_1'],
      ['Test data', ''],
      // The end of the input.
      ['Address', '\u0004'],
    ])
    expect([ended.code, ended.screen]).toEqual([2, expect.stringMatching(/Without an answer, nothing was/)])
    expect(screen).toMatch(/error: Without an answer, nothing was written\.\r\n$/)
    expect(code).toBe(2)
    expect(await readdir(folder)).toEqual([])
  })

  test.each(['.env', 'schedules.yaml'])('overwrites no %s', async (name) => {
    await writeFile(join(folder, name), 'mine')
    const { code, screen } = await init([])
    expect(screen).toBe(`error: ${name} exists, and init overwrites nothing. Edit it, or move it away.\r\n`)
    expect(code).toBe(2)
    expect(await readFile(join(folder, name), 'utf8')).toBe('mine')
  })
})

test('where there is no terminal, init says what to do instead', async () => {
  const child = spawn(process.execPath, [program, 'init'], { cwd: folder, env: base })
  let text = ''
  child.stderr.setEncoding('utf8').on('data', (part: string) => (text += part))
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(2)
  expect(text).toBe(
    'error: init asks questions, and this is not a terminal. Copy .env.example to .env and fill it in.\n',
  )
})
