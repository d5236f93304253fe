import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { styleText } from 'node:util'
import { toPrintable } from '../../core/runs/view/format.ts'
import { createBoard, type Progress } from './progress.ts'
import { RefusedError, toFailure } from './failures.ts'

/**
 * A command's output: results on stdout, everything else on stderr. Control characters are shown, never
 * interpreted.
 */
export interface Terminal {
  /** Whether there is a person to ask. */
  readonly isInteractive: boolean
  /** Prints `LIVE acc_...` or `TEST acc_...`, before anything is done. */
  identity(of: { workspace: string; testMode: boolean }): void
  note(line: string): void
  /** Shows the progress of something counted; `unit` is plural. */
  progress(what: { name: string; unit: string }): Progress
  /** Shows the progress of something not counted: immediately, with the time it takes. */
  task(title: string): { end(): void }
  /**
   * Asks for a line; the end of input counts as an empty answer. Requires `isInteractive`. `hidden`: what is typed is not
   * shown.
   */
  ask(question: string, options?: { signal?: AbortSignal; hidden?: boolean }): Promise<string>
  /** Prints the result, once: the document with `--json`, otherwise the text. */
  result(result: { document: unknown; text: string }): void
  /** Prints an error and returns its exit code. */
  failure(error: unknown): number
  close(): void
}

/** Whether the answer to a [y/N] question is yes, in English or Spanish. */
export const isYes = (answer: string): boolean => /^(y|yes|s|si|sí)$/i.test(answer)

/**
 * Asks whether to do what a command is about to do, unless `yes` was typed.
 *
 * @throws {RefusedError} the answer is no, or nobody is there to ask
 */
export async function confirm(of: {
  terminal: Terminal
  yes: boolean
  /** What would be done. */
  text?: string
  question: string
  /** What needs a confirmation, as in `Removing`. */
  what: string
  /** What holds after a no, as in `Nothing was removed.` */
  declined: string
  hint: string
}): Promise<void> {
  const { terminal, yes, text, question, what, declined, hint } = of
  if (yes) return
  if (text !== undefined) terminal.note(text)
  if (!terminal.isInteractive)
    throw new RefusedError(`${what} needs a confirmation, and this is not a terminal.`, {
      hint: `${declined} ${hint}`,
    })
  if (!isYes(await terminal.ask(`${question} [y/N] `))) throw new RefusedError(declined)
}

/** The folder where the user ran the command: npm starts commands in the package's folder. */
export const callersFolder = (): string => process.env['INIT_CWD'] ?? process.cwd()

/** Names files below the caller's folder as the caller would: without that folder. */
function shortenPaths(text: string): string {
  const folder = callersFolder()
  return folder === '/'
    ? text
    : text.replaceAll(`${folder}/`, (found, at: number) =>
        // Not in the middle of another path.
        /[\w./-]/.test(text.charAt(at - 1)) ? found : '',
      )
}

export const colorChoices = ['auto', 'always', 'never'] as const
export type Color = (typeof colorChoices)[number]

const stateColors = {
  proven: 'green',
  unproven: 'yellow',
  parked: 'yellow',
  'needs a person': 'yellow',
  'need a person': 'yellow',
  failed: 'red',
  rejected: 'red',
  // In the table of `check`.
  ok: 'green',
  WRONG: 'red',
} as const

/** The words of a state, not in the names of files and options. */
const states = new RegExp(`(?<![\\w./-])(${Object.keys(stateColors).join('|')})(?![-/\\w]|\\.\\w)`, 'g')

/**
 * Colours text for a stream; with `auto` only on a terminal, where Node's own rules (NO_COLOR, the terminal's kind) decide.
 */
function createPaint(stream: NodeJS.WritableStream & { isTTY?: boolean }, color: Color) {
  const isPlain = color === 'never' || (color === 'auto' && !stream.isTTY)
  const style = (name: Parameters<typeof styleText>[0], text: string) =>
    isPlain ? text : styleText(name, text, { stream, validateStream: color === 'auto' })
  const words = (text: string) =>
    text.replaceAll(states, (word) => style(stateColors[word as keyof typeof stateColors], word))
  /** Its first line says what it is about. */
  const result = (text: string) => words(text).replace(/^.+/, (first) => style('bold', first))
  return { style, words, result }
}

interface TerminalOptions {
  json: boolean
  /** Default: auto. */
  color?: Color
  /** Adds the stack to an error. */
  debug: boolean
  stdin?: NodeJS.ReadStream
  stdout?: NodeJS.WritableStream
  stderr?: Stderr
}

type Stderr = NodeJS.WritableStream & { isTTY?: boolean }

export function createTerminal(options: TerminalOptions): Terminal {
  const { json, stdin = process.stdin, stdout = process.stdout, stderr = process.stderr } = options
  // Despite its type, `isTTY` is undefined on anything other than a terminal.
  const isInteractive = !json && (stdin.isTTY ?? false) && (stderr.isTTY ?? false)
  const board = createBoard({ stream: stderr, as: json ? 'none' : stderr.isTTY ? 'bars' : 'lines' })
  const { color = 'auto' } = options
  const onStderr = createPaint(stderr, color)
  const onStdout = createPaint(stdout, color)
  const note = (line: string) => board.write(onStderr.words(toPrintable(shortenPaths(line))))
  const print = (stream: NodeJS.WritableStream, text: string) => void stream.write(`${text}\n`)
  return {
    isInteractive,
    identity: ({ workspace, testMode }) =>
      board.write(onStderr.style('bold', toPrintable(`${testMode ? 'TEST' : 'LIVE'} ${workspace}`))),
    note,
    progress: (what) => board.start(what),
    task(title) {
      if (!stderr.isTTY || json) note(`${title} ...`)
      return board.start({ name: title, unit: '' })
    },
    ask: (question, { signal, hidden = false } = {}) => ask({ question, stdin, stderr, signal, hidden }),
    result: ({ document, text }) =>
      print(
        stdout,
        json ? toPrintable(JSON.stringify(document)) : onStdout.result(toPrintable(shortenPaths(text))),
      ),
    failure(error) {
      const { exitCode, ...failure } = toFailure(error)
      const { name, message, hint } = failure
      board.close()
      const lines = [message, hint].filter((part) => part !== null)
      print(stderr, `${onStderr.style('red', 'error:')} ${toPrintable(shortenPaths(lines.join(' ')))}`)
      if (options.debug) print(stderr, toPrintable(String(error instanceof Error ? error.stack : name)))
      const details = error instanceof RefusedError ? error.details : undefined
      if (json) print(stdout, toPrintable(JSON.stringify({ error: { ...failure, ...details } })))
      return exitCode
    },
    close: () => board.close(),
  }
}

interface Question {
  question: string
  stdin: NodeJS.ReadStream
  stderr: Stderr
  signal: AbortSignal | undefined
  hidden: boolean
}

async function ask({ question, stdin, stderr, signal, hidden }: Question): Promise<string> {
  const nothing = new Writable({ write: (_chunk, _encoding, done) => done() })
  // Only to hide an answer as a terminal, because readline then handles Ctrl-C itself.
  const lines = createInterface({ input: stdin, output: hidden ? nothing : stderr, terminal: hidden })
  // Only now does the terminal show nothing of what is typed.
  if (hidden) stderr.write(toPrintable(question))
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')))
  try {
    const answer = lines.question(toPrintable(question), signal === undefined ? {} : { signal })
    return (await Promise.race([answer, ended])).trim()
  } finally {
    lines.close()
    if (hidden) stderr.write('\n')
  }
}

/** In ms. After this, people wonder what a command does. */
const slowMs = 1_000

/** Says what a command waits for if it takes longer than a second. */
export async function tellIfSlow<T>({ terminal, line, work }: Telling<T>): Promise<T> {
  const timer = setTimeout(() => terminal.note(line), slowMs)
  try {
    return await work
  } finally {
    clearTimeout(timer)
  }
}

interface Telling<T> {
  terminal: Pick<Terminal, 'note'>
  line: string
  work: Promise<T>
}

/** In ms. Under npm, one keystroke can arrive twice: from the terminal, and passed on by npm. */
const sameKeystrokeMs = 300

/**
 * Handles Ctrl-C until released: the first press calls `first` (stop cleanly), the second calls `second` (detach),
 * and a third ends the process immediately. SIGTERM counts as Ctrl-C. An error in a handler becomes an uncaught
 * exception.
 */
export function onInterrupt(handlers: {
  first: () => void | Promise<void>
  second: () => void | Promise<void>
}): Disposable {
  const steps = [handlers.first, handlers.second, () => process.exit(130)]
  let last = Number.NEGATIVE_INFINITY
  const listen = () => {
    const now = performance.now()
    if (now - last < sameKeystrokeMs) return
    last = now
    void steps.shift()?.()
  }
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.on(signal, listen)
  return {
    [Symbol.dispose]() {
      for (const signal of signals) process.off(signal, listen)
    },
  }
}
