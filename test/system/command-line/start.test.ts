import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runProgram } from './run-program.ts'

const start = (...words: string[]) =>
  runProgram({ program: 'test/system/command-line/probes/connector.ts', words })
const run = (...words: string[]) => start(...words).ended

describe('the command line', () => {
  it('prints a result on stdout and everything else on stderr', async () => {
    expect(await run('act', 'succeed')).toMatchObject({
      code: 0,
      stdout: 'all is well\n',
      stderr: 'TEST acc_1\non the way\n',
    })
  })

  it('prints one JSON document on stdout and nothing else with --json, before or after the command', async () => {
    for (const words of [
      ['--json', 'act', 'succeed'],
      ['act', 'succeed', '--json'],
    ]) {
      const { code, stdout } = await run(...words)
      expect({ code, document: JSON.parse(stdout) }).toEqual({ code: 0, document: { summary: 'well' } })
    }
  })

  it('tells a failure in one line, with the exit code of its meaning', async () => {
    const told = async (how: string) => {
      const { code, stdout, stderr } = await run('act', how)
      expect(stdout).toBe('')
      return [code, stderr]
    }
    expect(await told('fail')).toEqual([1, 'error: The disk is full.\n'])
    expect(await told('refuse')).toEqual([2, 'error: The run is finished. Start a new one.\n'])
    expect(await told('misuse')).toEqual([2, expect.stringMatching(/^error: --rows names row 9.*\n$/)])
    expect(await told('settings')).toEqual([
      2,
      expect.stringMatching(/^error: BILLING_BASE_URL is not set[^\n]*\n$/),
    ])
    expect(await told('failInTemporal')).toEqual([2, 'error: maxPages must be a number\n'])
    expect(await told('unproven')).toEqual([3, ''])
  })

  it('adds the failure as a document with --json', async () => {
    const { code, stdout, stderr } = await run('act', 'refuse', '--json')
    expect({ code, document: JSON.parse(stdout) }).toEqual({
      code: 2,
      document: {
        error: { name: 'RefusedError', message: 'The run is finished.', hint: 'Start a new one.' },
      },
    })
    expect(stderr).toBe('error: The run is finished. Start a new one.\n')
    const inTemporal = await run('act', 'failInTemporal', '--json')
    expect(JSON.parse(inTemporal.stdout)).toMatchObject({ error: { name: 'InvalidInput', hint: null } })
  })

  it('shows a stack only when asked', async () => {
    expect((await run('act', 'fail', '--debug')).stderr).toContain('probes/act.ts')
  })

  it('tells an error that nobody awaited, and ends', async () => {
    expect(await run('act', 'failUnseen')).toMatchObject({ code: 1, stderr: 'error: nobody awaited this\n' })
  })

  it('answers wrong usage with one line and a guess, exit 2', async () => {
    const told = async (...words: string[]) => {
      const { code, stdout, stderr } = await run(...words)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      return stderr
    }
    expect(await told('akt')).toBe("error: unknown command 'akt'; did you mean act?\n")
    expect(await told('act', 'succeed', '--shadow', 'x')).toBe(
      "error: unknown option '--shadow'; did you mean --shade?\n",
    )
    expect(await told('act')).toBe("error: missing required argument 'how'; see --help.\n")
    expect(await told('act', 'succeed', 'more')).toMatch(/^error: too many arguments[^\n]*; see --help\.\n$/)
    expect(await told('--debug')).toMatch(/^error: No command given; --help lists them\.\n/)
    const { code, stdout } = await run('akt', '--json')
    expect({ code, document: JSON.parse(stdout) }).toMatchObject({
      code: 2,
      document: { error: { name: 'UsageError' } },
    })
  })

  it.each([[], ['--color', 'never']])('prints the help when it is called alone (%s %s)', async (...words) => {
    expect(await run(...words)).toEqual({ ...(await run('--help')), ms: expect.any(Number) })
  })

  it('lists the commands without loading them, and loads the one whose help is asked', async () => {
    const list = await run('--help')
    expect(list).toMatchObject({ code: 0, stderr: '' })
    expect(list.stdout).toMatch(/act .*ends as it is told/)
    for (const words of [
      ['act', '--help'],
      ['help', 'act'],
    ]) {
      expect((await run(...words)).stdout).toMatch(/<how>[^]*--shade[^]*--json/)
    }
    expect(await run('broken')).toMatchObject({ code: 1, stderr: 'error: was loaded\n' })
  })

  it('ends quietly when its reader has seen enough', async () => {
    const { child, ended } = start('act', 'print')
    child.stdout.once('data', () => child.stdout.destroy())
    expect(await ended).toMatchObject({ code: 0, stderr: '' })
  })

  it.runIf(existsSync('/dev/full'))('fails where its result cannot be written', async () => {
    const full = openSync('/dev/full', 'w')
    const program = fileURLToPath(new URL('./probes/connector.ts', import.meta.url))
    const child = spawn(process.execPath, [program, 'act', 'succeed'], { stdio: ['ignore', full, 'pipe'] })
    const [[code], stderr] = await Promise.all([
      once(child, 'close'),
      text(child.stderr ?? Readable.from([])),
    ])
    closeSync(full)
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/error: [^\n]*ENOSPC[^\n]*\n$/),
    })
  })

  it('asks nobody where nobody is, and takes the end of input for an empty answer', async () => {
    const { child, ended } = start('act', 'ask')
    child.stdin.end()
    expect(await ended).toMatchObject({ code: 0, stderr: 'Sure? [false,""]\n' })
    const answered = start('act', 'ask')
    answered.child.stdin.write('yes \n')
    expect((await answered.ended).stderr).toBe('Sure? [false,"yes"]\n')
  })
})
