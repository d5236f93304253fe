import type { Command } from 'commander'
import { configureSignal } from '../runs/signal-run.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

export function configure(command: Command, terminal: Terminal): void {
  configureSignal({ command, terminal, signal: 'unpause', answer: 'resumes.' })
  addExamples(command, 'inspect', { 'unpause export-all-20261121-020000': 'resume a paused run' })
}
