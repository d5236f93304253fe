import type { Command } from 'commander'
import { configureSignal } from '../runs/signal-run.ts'
import type { Terminal } from '../terminal/terminal.ts'

export function configure(command: Command, terminal: Terminal): void {
  configureSignal({ command, terminal, signal: 'unpause', answer: 'resumes.' })
}
