import type { Command } from 'commander'
import { runDemo } from '../demo/run-demo.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

export function configure(command: Command, terminal: Terminal): void {
  command
    .option('--keep', 'keep everything running until Ctrl-C (default on a terminal)')
    .action(async ({ keep = terminal.isInteractive }: { keep?: boolean }) => runDemo({ terminal, keep }))
  addExamples(command, 'run', { 'demo --keep': 'leave the Temporal UI open to look around' })
}
