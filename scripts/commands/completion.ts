import type { Command } from 'commander'
import { createProgram, type Commands } from '../command-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples, choice } from './options.ts'

const shells = ['bash', 'zsh', 'fish'] as const
const names = ['connector', 'billing-connector']

export function configure(command: Command, terminal: Terminal, all: Commands): void {
  command.argument('<shell>', shells.join(', ')).action(async (name: string) => {
    const shell = choice('shell', shells)(name)
    const words = await readWords(terminal, all)
    const script = shell === 'fish' ? toFish(words) : toBash(words, shell)
    terminal.result({ document: { shell, script }, text: script })
  })
  addExamples(command, 'inspect', {
    'completion bash > ~/.local/share/bash-completion/completions/connector': 'for new bash sessions',
    'completion fish > ~/.config/fish/completions/connector.fish': 'for fish',
  })
}

/** The words that may follow a command and each of its options. */
interface Words {
  command: string
  summary: string
  next: string[]
  values: Map<string, readonly string[]>
}

async function readWords(terminal: Terminal, all: Commands): Promise<Words[]> {
  const program = createProgram(all)
  for (const one of program.commands) (await all[one.name()]?.load())?.configure(one, terminal, all)
  return program.commands.map((command) => {
    const options = [
      ...command.options,
      ...command.commands.flatMap((sub) => sub.options),
      ...program.options,
    ]
    const visible = options.filter(({ hidden, long }) => !hidden && long !== undefined)
    return {
      command: command.name(),
      summary: command.description(),
      next: [
        ...command.commands.map((sub) => sub.name()),
        ...command.registeredArguments.flatMap(({ description }) => listedIn(description)),
        ...new Set(visible.map(({ long }) => long ?? '')),
      ],
      values: new Map(
        visible.flatMap(({ long = '', argChoices, description }) => {
          const choices = argChoices ?? listedIn(description)
          return choices.length === 0 ? [] : [[long, choices] as const]
        }),
      ),
    }
  })
}

/** Extracts the names at the end of a description: `where to publish: csv, duckdb`. */
function listedIn(description: string): string[] {
  const [, list = ''] = /^(?:[^:,]*: )?([\w-]+(?:, [\w-]+)+)(?: \(.*\))?$/.exec(description) ?? []
  return list === '' ? [] : list.split(', ')
}

function toBash(words: readonly Words[], shell: 'bash' | 'zsh'): string {
  const values = words.flatMap(({ command, values: byOption }) =>
    [...byOption].map(([option, choices]) => `    "${command} ${option}") words="${choices.join(' ')}" ;;`),
  )
  return `${shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_connector() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]} words
  case "$COMP_CWORD" in
    1) words="${words.map(({ command }) => command).join(' ')}" ;;
    *) case "$command" in
${words.map(({ command, next }) => `      ${command}) words="${next.join(' ')}" ;;`).join('\n')}
    esac ;;
  esac
  case "$command $previous" in
${values.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _connector ${names.join(' ')}`
}

function toFish(words: readonly Words[]): string {
  const lines = words.flatMap(({ command, summary, next, values }) => {
    const seen = `-n '__fish_seen_subcommand_from ${command}'`
    return [
      `-n __fish_use_subcommand -a ${command} -d '${summary.replaceAll("'", String.raw`\'`)}'`,
      ...next.map((word) => {
        const choices = values.get(word)
        if (!word.startsWith('--')) return `${seen} -a ${word}`
        return `${seen} -l ${word.slice(2)}${choices === undefined ? '' : ` -x -a '${choices.join(' ')}'`}`
      }),
    ]
  })
  return names.flatMap((name) => lines.map((line) => `complete -c ${name} ${line}`)).join('\n')
}
