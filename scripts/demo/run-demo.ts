import { join, relative } from 'node:path'
import { createSandbox } from '../../sandbox/sandbox.ts'
import { readSettings, type Settings } from '../../worker/settings/settings.ts'
import { prepareDemoImport, runDemoImport } from './demo-import.ts'
import { demoRecovery, runDemoRecovery } from './demo-recovery.ts'
import { followExport } from '../runs/follow.ts'
import { reportExport } from '../runs/report-export.ts'
import { startExport } from '../runs/run-export.ts'
import { type Following, stopOnInterrupt } from '../runs/run-to-end.ts'
import { openLocalSession } from '../session/local-session.ts'
import { nameRecovery } from '../runs/run-recovery.ts'
import { exitCodes } from '../terminal/failures.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Session } from '../session/session.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { exportData } from '../../workflows/export-data.ts'

const token = 'demo-token'
const workspace = 'acc_demo'

/** Deletes and inserts during the read: enough to make any reader that trusts page numbers lose records. */
const listDrift = { perSecond: { deletes: 10, inserts: 10, updates: 10, lateCommits: 2 } }

export async function runDemo({ terminal, keep }: { terminal: Terminal; keep: boolean }): Promise<void> {
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
  closing.defer(() => session.close())
  terminal.identity(settings.billing)

  const results = collectResults(terminal)
  const { client } = session
  const { handle } = await startExport({ client, ...settings, input: {} })
  await followAndReport({ session, handle, terminal: results.as('export') })
  const exported = process.exitCode

  const demo = await prepareDemoImport({ settings, terminal })
  writing.add(demo.uploaded.run)
  const imported = await runDemoImport({ demo, sandbox, session, settings, terminal: results.as('import') })

  const run = nameRecovery({ settings, input: demoRecovery })
  writing.add(run)
  const recovery = { run, sandbox, session, settings, terminal: results.as('recovery') }
  const recovered = await runDemoRecovery(recovery)

  results.print()
  terminal.note(
    `Files and reports: ${relative(process.cwd(), settings.dataDir)}. The sandbox ends with the demo, so the suggested commands are examples.`,
  )
  // Rejected rows and subscriptions that fall back are part of the demo, so they are not a failure.
  process.exitCode = imported && recovered ? Number(exported) : exitCodes.unproven
  if (keep) await untilInterrupted({ terminal, uiUrl: session.uiUrl })
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
      CONNECTOR_TASK_QUEUE: '',
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

async function followAndReport({
  session,
  handle,
  terminal,
}: Omit<Following<typeof exportData>, 'settings'> & { session: Session }): Promise<void> {
  using _interrupt = stopOnInterrupt({ session, handle, terminal, stopNote: 'what was read is kept' })
  await reportExport({ report: await followExport({ ...session, handle, terminal }), terminal })
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
