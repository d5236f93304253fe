import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { runProgram } from './run-program.ts'

const start = (...words: string[]) =>
  runProgram({ program: 'test/system/command-line/probes/connector.ts', words })

describe('the command line', () => {
  it('writes progress as lines where nobody watches, none with --json, and ends with progress left open', async () => {
    const { code, stderr, ms } = await start('act', 'progress').ended
    expect(code).toBe(0)
    expect(stderr).toMatch(
      /^customers: 4,500 of 10,000 records, \d+ ms, 45 pages\nWaiting \.\.\.\nWaiting: \d+ ms\n$/,
    )
    expect(ms).toBeLessThan(5_000)
    expect((await start('act', 'progress', '--json').ended).stderr).toBe('Waiting ...\n')
  })

  it('takes a second Ctrl-C for a second one only when it is not the same keystroke, and a SIGTERM for a Ctrl-C', async () => {
    const { child, ended, says } = start('act', 'interrupt')
    await says('ready')
    child.kill('SIGINT')
    child.kill('SIGINT')
    await says('first')
    // The time between two keystrokes is the subject here.
    await sleep(400)
    expect(child.exitCode).toBeNull()
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ code: 0, stderr: 'ready\nfirst\nsecond\n' })
  })
})

describe('the connector', () => {
  it('answers --help and wrong usage at once', async () => {
    const help = await runProgram({ program: 'scripts/start.js', words: ['--help'] }).ended
    expect(help).toMatchObject({ code: 0, stderr: '' })
    const wrong = await runProgram({ program: 'scripts/start.js', words: ['exprt'] }).ended
    expect(wrong.code).toBe(2)
    // 0.1 s on an idle machine; nothing that takes seconds (Temporal, DuckDB) may be loaded.
    expect(Math.min(help.ms, wrong.ms)).toBeLessThan(1_000)
  })
})
