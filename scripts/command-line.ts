import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Command, CommanderError, Option } from 'commander'
import { program as name } from '../core/runs/view/shell.ts'
import { UsageError } from './terminal/failures.ts'
import { type Color, colorChoices, createTerminal, type Terminal } from './terminal/terminal.ts'

/**
 * Gives a command its arguments, options and action.
 *
 * An action prints through the terminal, throws errors (exit code: the error's `exitCode`, else 1) and sets
 * `process.exitCode` from `exitCodes` if the result is less than proven. It closes everything it opens, so that the
 * process ends by itself.
 */
export type Configure = (command: Command, terminal: Terminal, all: Commands) => void

/** A command, whose file is loaded only when it is chosen, or a group of commands. */
export type ListedCommand = { summary: string } & (
  | { load: () => Promise<Configure> }
  | { commands: Readonly<Record<string, ListedCommand>> }
)

export type Commands = Readonly<Record<string, ListedCommand>>

interface CommandLine {
  words: readonly string[]
  commands: Commands
}

/** How long a failed command may take to close what it opened, in ms. */
const failedGraceMs = 2_000

/** Executes one command line in this process and leaves its exit code in `process.exitCode`. */
export async function runCommandLine({ words, commands }: CommandLine): Promise<void> {
  const { color } = readGlobals(words)
  const terminal = createTerminal({
    color,
    json: words.includes('--json'),
    debug: words.includes('--debug'),
  })
  process.on('uncaughtException', (error) => process.exit(terminal.failure(error)))
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that closes early (`connector run list | head`) is not a failure. A full disk is.
    if (error.code === 'EPIPE') process.exit()
    throw error
  })
  const isDone = await execute({ words, commands, terminal })
  // A failed command has nothing left to do, and resources that it could not close must not keep it alive either.
  if (!isDone) setTimeout(() => process.exit(), failedGraceMs).unref()
}

/** What is known before the words are parsed: the colour, because a terminal says what is wrong with them, and the names. */
function readGlobals(words: readonly string[]) {
  const options = { color: { type: 'string' } } as const
  const { values, positionals } = parseArgs({ args: [...words], options, strict: false })
  const color: Color = colorChoices.find((one) => one === values.color) ?? 'auto'
  const hasOptions = Object.keys(values).some((one) => one !== 'color')
  return { color, hasOptions, names: positionals.filter((word) => word !== 'help') }
}

/** False if it failed; the exit code is in `process.exitCode`. */
export async function execute(of: CommandLine & { terminal: Terminal }): Promise<boolean> {
  const { commands, terminal } = of
  const { words } = of
  const { hasOptions, names } = readGlobals(words)
  const program = createProgram(commands)
  const { command, load } = find({ command: program, commands, names })
  try {
    if (load !== undefined) (await load())(command, terminal, commands)
    await program.parseAsync(words, { from: 'user' })
    return true
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return true
      // A program or group alone says what there is.
      if (error.code === 'commander.help' && !hasOptions) {
        command.outputHelp()
        return true
      }
    }
    process.exitCode = terminal.failure(error instanceof CommanderError ? toUsageError(error) : error)
    return false
  } finally {
    terminal.close()
  }
}

/** The command or group that the words name, as far as they name one. */
function find(of: { command: Command; commands: Commands; names: readonly string[] }): {
  command: Command
  load?: () => Promise<Configure>
} {
  const { command, commands } = of
  const [name = '', ...names] = of.names
  const [listed, found] = [commands[name], command.commands.find((one) => one.name() === name)]
  if (listed === undefined || found === undefined) return { command }
  return 'load' in listed
    ? { command: found, load: listed.load }
    : find({ command: found, commands: listed.commands, names })
}

export function createProgram(commands: Commands): Command {
  const program = new Command(name)
    .description('Exports, imports and recoveries for the billing service. Each run ends in a proof.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .option('--json', 'print one JSON document on stdout and nothing else')
    .option('--debug', 'print the stack of an error')
    .addOption(new Option('--color <when>', 'colour states').choices(colorChoices).default('auto'))
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeErr: () => undefined })
    .exitOverride()
  addCommands(program, commands)
  return program
}

function addCommands(parent: Command, commands: Commands): void {
  for (const [name, listed] of Object.entries(commands)) {
    const command = parent.command(name).description(listed.summary)
    if ('commands' in listed) addCommands(command, listed.commands)
  }
}

function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return (manifest as { version: string }).version
}

/** Commander's message as one line, with its suggestion. */
function toUsageError({ code, message }: CommanderError): UsageError {
  if (code === 'commander.help') return new UsageError('No command given; --help lists them.')
  // The end says what to write instead.
  const [, flags, text, name, instead] =
    /(?:option '(.+?)' argument|value) '(.*)' is invalid(?: for argument '(.+?)')?\. (.*)$/s.exec(message) ??
    []
  if (code === 'commander.invalidArgument' && instead !== undefined)
    return new UsageError(`"${text}" cannot be used for ${flags ?? `<${name}>`}. ${instead}`)
  const [problem = '', ...more] = message.replace(/^error: /, '').split('\n')
  const meant = more.join(' ').replace(/^\(Did you mean (.*)\?\)$/, 'did you mean $1?')
  return new UsageError(`${problem.replace(/\.$/, '')}; ${meant === '' ? 'see --help.' : meant}`)
}
