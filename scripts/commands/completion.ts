import { Argument, type Command } from 'commander'
import { createProgram, type Commands } from '../command-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples, choice } from './options.ts'

const shells = ['bash', 'zsh', 'fish'] as const

export function configure(command: Command, terminal: Terminal, all: Commands): void {
  const argument = new Argument('<shell>', 'your shell').choices(shells).argParser(choice('shell', shells))
  command.addArgument(argument).action(async (shell: (typeof shells)[number]) => {
    const program = createProgram(all)
    await configureAll(program, { all, terminal })
    const words = wordsOf(program)
    const script = shell === 'fish' ? toFish(words) : toBash(words, shell)
    terminal.result({ document: { shell, script }, text: script })
  })
  addExamples(command, 'inspect', {
    'completion bash > ~/.local/share/bash-completion/completions/connector': 'for new bash sessions',
    'completion fish > ~/.config/fish/completions/connector.fish': 'for fish',
  })
}

/** The words that may follow a command, a group or the program itself, and those that may follow each option. */
interface Words {
  /** `export`, `run show`; empty for the program itself. */
  command: string
  next: string[]
  options: { name: string; values: readonly string[] }[]
}

async function configureAll(parent: Command, of: { all: Commands; terminal: Terminal }): Promise<void> {
  for (const command of parent.commands) {
    const listed = of.all[command.name()]
    if (listed === undefined) continue
    if ('commands' in listed) await configureAll(command, { ...of, all: listed.commands })
    else (await listed.load())(command, of.terminal, of.all)
  }
}

function wordsOf(command: Command, path: readonly string[] = []): Words[] {
  const below = command.commands.flatMap((sub) => wordsOf(sub, [...path, sub.name()]))
  const options = command.options.flatMap(({ hidden, long, argChoices = [] }) =>
    hidden || long === undefined || long === null ? [] : [{ name: long, values: argChoices }],
  )
  const next = [
    ...command.commands.map((sub) => sub.name()),
    ...command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
  ]
  return [{ command: path.join(' '), next, options }, ...below]
}

function toBash(words: readonly Words[], shell: 'bash' | 'zsh'): string {
  const [program, ...commands] = words
  const common = (program?.options ?? []).map(({ name }) => name)
  const cases = words.map(({ command, next, options }) => {
    const follow = [...next, ...new Set([...options.map(({ name }) => name), ...common])]
    return `    "${command}") words="${follow.join(' ')}" ;;`
  })
  const values = words.flatMap(({ command, options }) =>
    options
      .filter(({ values: some }) => some.length > 0)
      .map(({ name, values: some }) => `    "${command} ${name}") words="${some.join(' ')}" ;;`),
  )
  const groups = commands.filter(({ command }) => words.some((one) => one.command.startsWith(`${command} `)))
  return `${shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_connector() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command= words
  [ "$COMP_CWORD" -gt 1 ] && command=\${COMP_WORDS[1]}
  case "$command" in
    ${groups.map(({ command }) => command).join('|')}) [ "$COMP_CWORD" -gt 2 ] && command="$command \${COMP_WORDS[2]}" ;;
  esac
  case "$command" in
${cases.join('\n')}
  esac
  case "$command $previous" in
${values.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _connector connector`
}

function toFish(words: readonly Words[]): string {
  const lines = words.flatMap(({ command, next, options }) => {
    const seen = command.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`)
    const where = `-n '${command === '' ? '__fish_use_subcommand' : seen.join('; and ')}'`
    return [
      ...next.map((word) => `${where} -a ${word}`),
      ...options.map(({ name, values }) => {
        const choices = values.length === 0 ? '' : ` -x -a '${values.join(' ')}'`
        return `${where} -l ${name.slice(2)}${choices}`
      }),
    ]
  })
  return lines.map((line) => `complete -c connector ${line}`).join('\n')
}
