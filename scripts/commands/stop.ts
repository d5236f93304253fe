import type { Command } from 'commander'
import { configureSignal } from '../runs/signal-run.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

export function configure(command: Command, terminal: Terminal): void {
  configureSignal({
    command,
    terminal,
    signal: 'stop',
    answer:
      'stops cleanly: it sends nothing more, looks up what it has just sent, and writes its report. Nothing is lost.',
  })
  addExamples(command, 'inspect', {
    'stop export-all-20261121-020000': 'end a run; its report says what is missing',
  })
}
