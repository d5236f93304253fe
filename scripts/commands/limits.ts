import type { Command } from 'commander'
import { personHere } from '../runs/person.ts'
import { updateImport } from '../runs/update-import.ts'
import { processSettings } from '../session/settings.ts'
import { UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples, rateOption, toNumber, toWholeNumber } from './options.ts'

interface Options {
  rate?: number
  concurrency?: number
  maxChanges?: number
  maxFailures?: number
  maxFailureShare?: number
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<run>', 'workflow id of the run')
    .addOption(rateOption())
    .option('--concurrency <n>', 'requests in flight at once', toWholeNumber)
    .option('--max-changes <n>', 'maximum number of changes to send', toWholeNumber)
    .option('--max-failures <n>', 'stop the run when more changes than this have failed', toWholeNumber)
    .option('--max-failure-share <n>', 'share of failures that opens the breaker, 0 to 1', toNumber)
    .action(async (run: string, { rate, ...others }: Options) => {
      const limits = { ...(rate !== undefined && { requestsPerSecond: rate }), ...others }
      if (Object.keys(limits).length === 0) throw new UsageError('Name a limit; see --help.')
      const input = { ...limits, by: personHere() }
      const now = await updateImport<object>({
        settings: processSettings(),
        terminal,
        run,
        name: 'setLimits',
        input,
      })
      const list = Object.entries(now).map(([name, value]) => `${name} ${value}`)
      terminal.result({ document: { run, limits: now }, text: `${run}: ${list.join(', ')}` })
    })
  addExamples(command, 'inspect', {
    'limits recover-20261121-100000 --rate 2': 'slow a run down while it works',
    'limits recover-20261121-100000 --max-changes 500 --max-failures 20': 'change its bounds',
  })
}
