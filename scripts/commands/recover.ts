import { Option, type Command } from 'commander'
import { parseRecoveryInput, type RecoveryInput } from '../../core/recoveries/input.ts'
import { reasonNames, triedReasons, type Reason } from '../../core/recoveries/reasons.ts'
import { processSettings } from '../session/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  addExamples,
  addServerOptions,
  choice,
  rateOption,
  toCount,
  toList,
  toNumber,
  toServer,
  toWholeNumber,
  type ServerOptions,
} from './options.ts'

interface Options extends ServerOptions {
  reason?: Reason[]
  maxPages?: number
  maxChanges?: number
  rate?: number
  concurrency?: number
  attempts?: number
  canary?: number
  nextBilling?: string
  customers?: string[]
  exclude?: string[]
  olderThan?: string
  firstWait?: string
  coolDown?: string
  verifyAfter?: string
  maxFailureShare?: number
  waitForApproval?: true
  yes?: true
  dryRun?: true
}

const toReason = choice('reason', reasonNames)

/** Also repeatable. */
const toReasons = (text: string, before: readonly Reason[] = []): Reason[] => [
  ...before,
  ...toList(text).map(toReason),
]

export function configure(command: Command, terminal: Terminal): void {
  const reason = new Option(
    '--reason <reasons>',
    `resume subscriptions with these reasons, separated by commas (default: ${triedReasons.join(', ')})`,
  )
  command
    .addOption(reason.choices(reasonNames).argParser(toReasons))
    .option('--max-pages <n>', 'maximum requests for the list (default: 50)', toCount)
    .option('--max-changes <n>', 'maximum subscriptions to resume (default: 500)', toCount)
    .addOption(rateOption())
    .option('--concurrency <n>', 'resumes in flight at once', toCount)
    .option(
      '--attempts <n>',
      'maximum resume requests for one subscription with the same problem, over all runs (default: 3)',
      toCount,
    )
    .option('--canary <n>', 'how many of each reason to resume first (default: 5)', toWholeNumber)
    .option('--next-billing <date>', 'sent with each resume, as in 2026-12-01 (default: not sent)')
    .option('--customers <ids>', 'only subscriptions of these customers, separated by commas', toList)
    .option('--exclude <ids>', 'skip these customers or subscriptions, separated by commas', toList)
    .option('--older-than <time>', 'only what has needed attention at least this long, as in 2h or 3d')
    .option(
      '--first-wait <time>',
      'wait before a second attempt; doubles for each further one (default: 15m)',
    )
    .option('--cool-down <time>', 'skip what was resumed less than this ago (default: 1h)')
    .option('--verify-after <time>', 'wait before checking a resume (default: BILLING_SETTLE_SECONDS)')
    .option('--max-failure-share <n>', 'share of failures that opens a breaker, 0 to 1', toNumber)
    .option('--wait-for-approval', 'resume nothing until somebody approves (connector approve)')
    .option('--yes', 'do not ask on a terminal')
    .option('--dry-run', 'read and report; resume nothing')
  addServerOptions(command).action((options: Options) => act({ options, terminal }))
  addExamples(command, 'run', {
    'recover --dry-run': 'the preview only',
    'recover --reason gateway_issue --max-changes 100 --rate 5': 'one reason, within bounds',
    'recover --customers 501,502 --wait-for-approval': 'two customers, after an approval in the Temporal UI',
  })
}

async function act({ options, terminal }: { options: Options; terminal: Terminal }): Promise<void> {
  const { waitForApproval = false, yes = false } = options
  const server = toServer(options)
  const input = toInput(options)
  // Reports, before any server is started, errors that would fail the run immediately.
  parseRecoveryInput(input)
  const settings = processSettings()
  // Loaded late: Temporal's client and worker take a second to load, and usage errors are reported first.
  const { runRecovery } = await import('../runs/run-recovery.ts')
  await runRecovery({ settings, terminal, order: { input, waitForApproval, yes, ...server } })
}

function toInput({ reason, rate, dryRun, ...options }: Options): RecoveryInput {
  const { local: _, detach: __, yes: ___, waitForApproval: ____, ...same } = options
  return {
    ...(reason !== undefined && { reasons: reason }),
    ...same,
    ...(rate !== undefined && { requestsPerSecond: rate }),
    ...(dryRun && { dryRun }),
  }
}
