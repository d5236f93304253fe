import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { UsageError } from './terminal/failures.ts'
import { createTerminal } from './terminal/terminal.ts'
import type { Terminal } from './terminal/terminal.ts'

/**
 * The file of a command. `configure` gives the command its arguments, options and action.
 *
 * An action speaks through the terminal, throws what goes wrong (an error's `exitCode`, else 1) and sets
 * `process.exitCode` from `exitCodes` where it ends with less than proven. It closes what it opens: the process
 * ends by itself.
 */
export interface CommandFile {
  configure(command: Command, terminal: Terminal): void
}

/** A command as it is listed; its file is loaded only when it is chosen. */
export interface ListedCommand {
  summary: string
  load: () => Promise<CommandFile>
}

export type Commands = Readonly<Record<string, ListedCommand>>

/** For what a failed command left open to end by itself. */
const failedGraceMs = 2_000

/** Carries out one command line in this process and leaves its exit code in `process.exitCode`. */
export async function runCommandLine({ words, commands }: { words: readonly string[]; commands: Commands }) {
  const terminal = createTerminal({
    json: words.includes('--json'),
    debug: words.includes('--debug') || Boolean(process.env['DEBUG']),
  })
  process.on('uncaughtException', (error) => process.exit(terminal.failure(error)))
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // `connector runs | head`: a reader that has seen enough is no failure. A full disk is.
    if (error.code === 'EPIPE') process.exit()
    throw error
  })
  try {
    const program = createProgram(commands)
    const name = chosenName(words)
    const command = program.commands.find((one) => one.name() === name)
    const file = await commands[name ?? '']?.load()
    if (command !== undefined) file?.configure(command, terminal)
    await program.parseAsync(words, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return
    process.exitCode = terminal.failure(error instanceof CommanderError ? toUsageError(error) : error)
    // A command that failed has nothing more to say: what it could not close must not keep it.
    setTimeout(() => process.exit(), failedGraceMs).unref()
  } finally {
    terminal.close()
  }
}

function createProgram(commands: Commands): Command {
  const program = new Command('connector')
    .description('Exports, imports and recoveries for the billing service, each ending in a proof.')
    .version(versionOfPackage())
    .option('--json', 'one JSON document on stdout and nothing else')
    .option('--debug', 'the stack of an error too')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeErr: () => undefined })
    .exitOverride()
  for (const [name, { summary }] of Object.entries(commands)) program.command(name).description(summary)
  return program
}

function versionOfPackage(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return (manifest as { version: string }).version
}

function chosenName(words: readonly string[]): string | undefined {
  const [first, second] = words.filter((word) => !word.startsWith('-'))
  return first === 'help' ? second : first
}

/** Commander's words in our form: one line, with what it believes was meant. */
function toUsageError({ code, message }: CommanderError): UsageError {
  if (code === 'commander.help') return new UsageError('No command was given; --help lists them.')
  const [what = '', ...more] = message.replace(/^error: /, '').split('\n')
  const meant = more.join(' ').replace(/^\(Did you mean (.*)\?\)$/, 'did you mean $1?')
  return new UsageError(`${what.replace(/\.$/, '')}; ${meant === '' ? 'see --help.' : meant}`)
}
