import type { Command } from 'commander'
import { parseRecoveryInput, type RecoveryInput } from '../../core/recoveries/input.ts'
import { reasonNames, triedReasons } from '../../core/recoveries/reasons.ts'
import { processSettings } from '../session/settings.ts'
import { UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Options {
  reason: string[]
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
  local?: true
  detach?: true
}

/** What a command line asks for, read and checked. `input` lacks what depends on who sits here. */
export interface RecoveryOrder {
  input: RecoveryInput
  waitForApproval: boolean
  yes: boolean
  local: boolean
  detach: boolean
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .option(
      '--reason <reason>',
      `what to resume; may be given again (default: ${triedReasons.join(', ')}; all: ${reasonNames.join(', ')})`,
      (text: string, before: readonly string[]) => [...before, text],
      [],
    )
    .option('--max-pages <n>', 'the most requests for the list (default 50)', toNumber)
    .option('--max-changes <n>', 'the most subscriptions to resume (default 500)', toNumber)
    .option('--rate <n>', 'requests a second of this run, within the rate of the worker', toNumber)
    .option('--concurrency <n>', 'resumes on their way at once', toNumber)
    .option(
      '--attempts <n>',
      'most resume requests for one subscription in the same trouble, over all runs (default 3)',
      toNumber,
    )
    .option('--canary <n>', 'how many of each reason go first (default 5)', toNumber)
    .option('--next-billing <date>', 'sent with each resume, as 2026-12-01; without it the field is left out')
    .option('--customers <ids>', 'only subscriptions of these customers, with commas', toList)
    .option('--exclude <ids>', 'not these customers or subscriptions, with commas', toList)
    .option('--older-than <time>', 'only what has needed attention at least so long, as 2h or 3d')
    .option('--first-wait <time>', 'before a second attempt; doubles for each further one (default 15m)')
    .option('--cool-down <time>', 'leave alone what was resumed so short a time ago (default 1h)')
    .option('--verify-after <time>', 'how long after a resume to look (default: BILLING_SETTLE_SECONDS)')
    .option('--max-failure-share <n>', 'the share of failures that opens a breaker, 0 to 1', toNumber)
    .option('--wait-for-approval', 'resume nothing before somebody approves (connector approve)')
    .option('--yes', 'do not ask on a terminal')
    .option('--dry-run', 'read and report; nothing is resumed')
    .option('--local', 'with a Temporal dev server and a worker of its own')
    .option('--detach', 'start the run and return')
    .action((options: Options) => act({ options, terminal }))
}

async function act({ options, terminal }: { options: Options; terminal: Terminal }): Promise<void> {
  const { local = false, detach = false, waitForApproval = false, yes = false } = options
  if (local && detach)
    throw new UsageError(
      '--local ends with this command, and --detach leaves the run to others; start `connector up` and leave --local away.',
    )
  const input = toInput(options)
  // What would make the run fail at once is said before any server is started.
  parseRecoveryInput(input)
  const settings = processSettings()
  // Temporal's client and worker take a second to load: wrong usage is told before.
  const { runRecovery } = await import('../runs/run-recovery.ts')
  await runRecovery({ settings, terminal, order: { input, waitForApproval, yes, local, detach } })
}

function toInput({ reason, rate, dryRun, ...options }: Options): RecoveryInput {
  const { local: _, detach: __, yes: ___, waitForApproval: ____, ...same } = options
  return {
    // Misspelt ones are told with what there is.
    ...(reason.length > 0 && { reasons: reason as RecoveryInput['reasons'] }),
    ...same,
    ...(rate !== undefined && { requestsPerSecond: rate }),
    ...(dryRun && { dryRun }),
  }
}

const toList = (text: string) => text.split(',').map((part) => part.trim())

function toNumber(text: string): number {
  const number = Number(text)
  if (text.trim() !== '' && Number.isFinite(number)) return number
  throw new UsageError(`${text} is not a number.`)
}
