import { Writable } from 'node:stream'
import { execute } from '../../../scripts/command-line.ts'
import { commands } from '../../../scripts/commands/commands.ts'
import { createTerminal } from '../../../scripts/terminal/terminal.ts'
import type { Ended } from './run-program.ts'

type Call = [
  world: { env: NodeJS.ProcessEnv },
  words: readonly string[],
  options?: { env?: NodeJS.ProcessEnv },
]

let last: Promise<unknown> = Promise.resolve()

/**
 * A command of the connector in this process, for tests whose subject is not the process: a second of CPU cheaper than
 * `startCommand`. It uses the environment of the process, so calls run one after another.
 */
export function callCommand(...call: Call): Promise<Ended> {
  const ended = last.then(() => carryOut(...call))
  last = ended.catch(() => undefined)
  return ended
}

async function carryOut(...[world, words, { env } = {}]: Call): Promise<Ended> {
  const startedAt = performance.now()
  const texts = { stdout: '', stderr: '' }
  const sink = (name: keyof typeof texts) =>
    new Writable({ write: (chunk, _, done) => (void (texts[name] += String(chunk)), done()) })
  const terminal = createTerminal({
    json: words.includes('--json'),
    debug: false,
    stdout: sink('stdout'),
    stderr: sink('stderr'),
  })
  const before = process.env
  const { PATH, HOME } = before
  process.env = { PATH, HOME, ...world.env, ...env }
  try {
    await execute({ words, commands, terminal })
    return { code: Number(process.exitCode ?? 0), ...texts, ms: performance.now() - startedAt }
  } finally {
    process.env = before
    process.exitCode = undefined
  }
}
