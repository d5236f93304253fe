import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { addFact } from '../../facts.ts'

const root = new URL('../../../', import.meta.url)

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
  ms: number
}

/** A program of the project in a process of its own, which ends with the test at the latest. */
export function runProgram(options: {
  /** Its path in the project. */
  program: string
  words: readonly string[]
  env?: NodeJS.ProcessEnv
  detached?: boolean
  /** The user it runs as, where the tests may choose one. */
  uid?: number | undefined
  /** A command that runs it: a shell that sets limits first. */
  through?: readonly string[]
}) {
  const startedAt = performance.now()
  const program = fileURLToPath(new URL(options.program, root))
  const [first, ...more] = [...(options.through ?? []), process.execPath, program, ...options.words]
  const child = spawn(first ?? '', more, {
    stdio: 'pipe',
    detached: options.detached ?? false,
    ...(options.uid !== undefined && { uid: options.uid, gid: options.uid }),
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      // The program itself chooses the folder.
      ...(options.program !== 'scripts/start.js' && {
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      }),
      ...options.env,
    },
  })
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => (texts[name] += text))
  }
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code) => resolve({ code, ...texts, ms: performance.now() - startedAt }))
  })
  addFact(() => {
    const state = child.exitCode ?? child.signalCode ?? 'still running'
    const said = (texts.stdout + texts.stderr).trim().slice(-1_000)
    return `The program ${options.words.join(' ')} (${state}) said: ${said || 'nothing'}`
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, ended, texts, says: (word: string) => says({ child, word, texts }) }
}

/** Until it has said the word. */
function says(of: {
  child: ChildProcess
  word: string
  texts: { stdout: string; stderr: string }
}): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = () => (of.texts.stdout + of.texts.stderr).includes(of.word) && resolve()
    of.child.stdout?.on('data', look)
    of.child.stderr?.on('data', look)
    of.child.once('close', () => reject(new Error(`ended without saying "${of.word}": ${of.texts.stderr}`)))
    look()
  })
}
