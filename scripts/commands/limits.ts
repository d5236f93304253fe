import type { Command } from 'commander'
import { personHere } from '../runs/ask.ts'
import { updateImport } from '../runs/update-import.ts'
import { processSettings } from '../session/settings.ts'
import { UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Options {
  rate?: number
  concurrency?: number
  maxChanges?: number
  maxFailures?: number
  maxFailureShare?: number
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<run>', 'the workflow id of the run')
    .option('--rate <n>', 'requests a second of this run', toNumber)
    .option('--concurrency <n>', 'changes on their way at once', toNumber)
    .option('--max-changes <n>', 'the most changes that are tried', toNumber)
    .option('--max-failures <n>', 'end the run when more have failed', toNumber)
    .option('--max-failure-share <n>', 'the share of failures that opens the breaker, 0 to 1', toNumber)
    .action(async (run: string, { rate, ...others }: Options) => {
      const limits = { ...(rate !== undefined && { requestsPerSecond: rate }), ...others }
      if (Object.keys(limits).length === 0) throw new UsageError('Name a limit; see --help.')
      const input = { ...limits, by: personHere() }
      const now = await updateImport<object>({ settings: processSettings(), run, name: 'setLimits', input })
      const words = Object.entries(now).map(([name, value]) => `${name} ${value}`)
      terminal.result({ document: { run, limits: now }, text: `${run}: ${words.join(', ')}` })
    })
}

function toNumber(text: string): number {
  const number = Number(text)
  if (text.trim() !== '' && Number.isFinite(number) && number >= 0) return number
  throw new UsageError(`${text} is not a number from 0.`)
}
