import type { Command } from 'commander'
import { join, relative } from 'node:path'
import { createSandbox } from '../../sandbox/sandbox.ts'
import { readSettings, type Settings } from '../../worker/settings/settings.ts'
import type { DemoContext } from './demo-context.ts'
import { prepareDemoImport, runDemoImport } from './demo-import.ts'
import { demoRecovery, runDemoRecovery } from './demo-recovery.ts'
import { addExamples } from '../commands/options.ts'
import { followExport } from '../runs/follow.ts'
import { reportExport } from '../runs/report-export.ts'
import { startExport } from '../runs/run-export.ts'
import { stopOnInterrupt } from '../runs/run-to-end.ts'
import { openLocalSession } from '../session/local-session.ts'
import { inSession } from '../session/session.ts'
import { nameRecovery } from '../runs/run-recovery.ts'
import { exitCodes } from '../terminal/failures.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Terminal } from '../terminal/terminal.ts'

const token = 'demo-token'
const workspace = 'acc_demo'

/** Deletes and inserts during the read: enough to make any reader that trusts page numbers lose records. */
const listDrift = { perSecond: { deletes: 10, inserts: 10, updates: 10, lateCommits: 2 } }

export function configure(command: Command, terminal: Terminal): void {
  command
    .option('--keep', 'keep everything running until Ctrl-C (default on a terminal)')
    .action(async ({ keep = terminal.isInteractive }: { keep?: boolean }) => runDemo({ terminal, keep }))
  addExamples(command, 'run', { 'demo --keep': 'leave the Temporal UI open to look around' })
}

async function runDemo({ terminal, keep }: { terminal: Terminal; keep: boolean }): Promise<void> {
  const counts = { customers: 5_000, subscriptions: 2_000, plans: 60, retentions: 1_000 }
  const drift = { customers: listDrift, subscriptions: listDrift, retentions: listDrift }
  const sandbox = await createSandbox({ token, workspace, counts, drift })
  terminal.note(
    `A sandbox of the billing service is running at ${sandbox.url} and keeps changing its records.`,
  )
  const settings = demoSettings(sandbox.url)
  await using closing = new AsyncDisposableStack()
  closing.defer(() => sandbox.close())
  const writing = new Set<string>()
  const mayWrite = (run: string) => writing.has(run)
  const session = await openLocalSession({ settings, terminal, mayWrite })
  await inSession(session, async () => {
    terminal.identity(settings.billing)

    const results = collectResults(terminal)
    const parts: ((context: DemoContext) => Promise<boolean>)[] = [
      async (context) => await runDemoExport({ ...context, terminal: results.as('export') }),
      async (context) => {
        const demo = await prepareDemoImport(context)
        writing.add(demo.uploaded.run)
        return await runDemoImport({ ...context, demo, terminal: results.as('import') })
      },
      async (context) => {
        const run = nameRecovery({ settings, input: demoRecovery })
        writing.add(run)
        return await runDemoRecovery({ ...context, run, terminal: results.as('recovery') })
      },
    ]
    // Ctrl-C stops the run of a part; those that follow do not begin.
    let isInterrupted = false
    using _interrupt = onInterrupt({ first: () => void (isInterrupted = true), second: () => undefined })
    const succeeded: boolean[] = []
    for (const part of parts)
      if (!isInterrupted) succeeded.push(await part({ sandbox, session, settings, terminal }))

    results.print()
    terminal.note(
      `Files and reports: ${relative(process.cwd(), settings.dataDir)}. The sandbox ends with the demo, so the suggested commands are examples.`,
    )
    // Rejected rows and subscriptions that fall back are part of the demo, so they are not a failure.
    process.exitCode = isInterrupted || !succeeded.every(Boolean) ? exitCodes.unproven : exitCodes.proven
    if (keep && !isInterrupted) await untilInterrupted({ terminal, uiUrl: session.uiUrl })
  })
}

function demoSettings(baseUrl: string): Settings {
  const { env } = process
  const dataDir = join(env['INIT_CWD'] ?? process.cwd(), 'data', 'demo')
  return readSettings({
    env: {
      ...env,
      BILLING_BASE_URL: baseUrl,
      BILLING_TOKEN: token,
      BILLING_TOKEN_FILE: '',
      BILLING_WORKSPACE: workspace,
      BILLING_TEST_MODE: 'false',
      BILLING_REQUESTS_PER_SECOND: '50',
      // In the sandbox, a lost request takes effect immediately or never.
      BILLING_SETTLE_SECONDS: '1',
      CONNECTOR_DATA_DIR: dataDir,
      TEMPORAL_ADDRESS: '',
    },
    cwd: process.cwd(),
  })
}

/** Collects the results of several runs into the single result of this command. */
function collectResults(terminal: Terminal) {
  const documents: Record<string, unknown> = {}
  const texts: string[] = []
  return {
    as: (name: string): Terminal => ({
      ...terminal,
      result({ document, text }) {
        documents[name] = document
        texts.push(text)
      },
    }),
    print: () => terminal.result({ document: documents, text: texts.join('\n\n') }),
  }
}

/** Exports all four lists. True if all are proven. */
async function runDemoExport({ session, settings, terminal }: DemoContext): Promise<boolean> {
  const { handle } = await startExport({ settings, session, input: {} })
  using _interrupt = stopOnInterrupt({
    session,
    handle,
    terminal,
    stopNote: 'nothing more is read or published',
  })
  const report = await followExport({ ...session, handle, terminal })
  await reportExport({ report, terminal })
  return report.verdict === 'proven'
}

async function untilInterrupted({
  terminal,
  uiUrl,
}: {
  terminal: Terminal
  uiUrl: string | undefined
}): Promise<void> {
  terminal.note(`The Temporal UI is at ${uiUrl}. Press Ctrl-C to end the demo.`)
  const { promise, resolve } = Promise.withResolvers<void>()
  using _interrupt = onInterrupt({ first: resolve, second: () => process.exit(1) })
  await promise
}
