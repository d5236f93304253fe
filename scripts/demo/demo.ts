import type { Command } from 'commander'
import { join, relative } from 'node:path'
import { writeFile } from 'node:fs/promises'
import { createSandbox, type Sandbox } from '../../sandbox/sandbox.ts'
import { readSettings, type Settings } from '../../worker/settings/settings.ts'
import { addExamples } from '../commands/options.ts'
import { openLocalSession } from '../session/local-session.ts'
import { inSession, type Session } from '../session/session.ts'
import { followExport, followImport, followRecovery } from '../runs/follow.ts'
import { type ImportOrder, previewImport, startImport, uploadImport } from '../runs/import.ts'
import { exportRequest, recoveryRequest, type RunRequest, startRun, stopOnInterrupt } from '../runs/jobs.ts'
import { exitCodes } from '../terminal/failures.ts'
import { onInterrupt, type Terminal } from '../terminal/terminal.ts'
import type { RecoveryInput } from '../../core/recoveries/input.ts'

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
        const request = recoveryRequest({ settings, input: demoRecovery })
        writing.add(request.workflowId)
        return await runDemoRecovery({ ...context, request, terminal: results.as('recovery') })
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
  const request = exportRequest({ settings, input: {} })
  const { handle } = await startRun({ settings, session, request })
  using _interrupt = stopOnInterrupt({
    session,
    handle,
    terminal,
    stopNote: 'nothing more is read or published',
  })
  return (await followExport({ session, handle, terminal, settings })).verdict === 'proven'
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

/** What each part of the demo runs with. */
interface DemoContext {
  sandbox: Sandbox
  session: Session
  settings: Settings
  terminal: Terminal
}

/** The number of valid rows, enough for a canary. */
const validRows = 24
const post = 'POST /retentions/'

/** An import that is ready to send: its file is checked and in the data folder, and its run has a name. */
type DemoImport = Awaited<ReturnType<typeof prepareDemoImport>>

/** Prepares a realistic file: valid rows, a date that does not exist, and a duplicate row. */
async function prepareDemoImport({ settings, terminal }: Omit<DemoContext, 'sandbox' | 'session'>) {
  // Uses numbers that no earlier demo on this data folder has used: the ledger would refuse to send them again.
  const first = Math.floor(Date.now() / 1000)
  const file = join(settings.dataDir, 'retentions.csv')
  await writeFile(file, toCsv(first))
  const order: ImportOrder = {
    file,
    reading: [],
    mapping: {},
    input: { kind: 'retentions', onInvalid: 'skip' },
    yes: true,
    local: true,
    detach: false,
  }
  terminal.note(`Importing ${file}, which has three invalid rows:`)
  const uploaded = await uploadImport({ settings, order })
  await previewImport({ settings, order, uploaded, terminal })
  return { first, order, uploaded }
}

/** Imports the file while a response and a request are lost. True if the run is proven and the sandbox agrees. */
async function runDemoImport({
  demo: { first, order, uploaded },
  sandbox,
  session,
  settings,
  terminal,
}: DemoContext & { demo: DemoImport }): Promise<boolean> {
  // Other clients keep creating retentions, but none deletes ours.
  sandbox.control.setDrift({ drift: { retentions: { perSecond: { inserts: 10, updates: 10 } } } })
  sandbox.control.addFault({ fault: { kind: 'reset', effect: 'done', on: post, requests: [8] } })
  sandbox.control.addFault({ fault: { kind: 'reset', effect: 'none', on: post, requests: [12] } })
  const { handle } = await startImport({ settings, terminal, order, session, uploaded })
  const stopNote = 'everything that was sent is on record'
  using _interrupt = stopOnInterrupt({ session, handle, terminal, stopNote })
  terminal.note(
    'Two connections break: one after the service created the retention, one before. To the client, both look the same.',
  )
  const { verdict } = await followImport({ session, handle, terminal, settings })
  const times = timesOf(sandbox, first)
  const once = times.filter((count) => count === 1).length
  terminal.note(
    `The sandbox has ${once} of the ${validRows} valid rows exactly once, and ${times.length - once} not once.`,
  )
  return verdict === 'proven' && once === validRows
}

function toCsv(first: number): string {
  const header = 'supplier,document,number,date,total,lines.1.name,lines.1.amount,lines.1.quantity'
  const row = (index: number, date = `2026-03-${String(1 + index).padStart(2, '0')}`) =>
    `sup_${index % 5},${index % 3 === 0 ? 8 : 7},${first + index},${date},${100 + index}.50,Honorarios,${100 + index}.50,1`
  const good = Array.from({ length: validRows }, (_, index) => row(index))
  const bad = [row(validRows, '2026-02-30'), row(validRows + 1), row(validRows + 1)]
  return [header, ...good, ...bad, ''].join('\n')
}

/** Counts how often the service has each of the valid rows. */
function timesOf(sandbox: Sandbox, first: number): number[] {
  const times = Array.from({ length: validRows }, () => 0)
  for (const text of sandbox.control.records({ resource: 'retentions' })) {
    const { number } = JSON.parse(text) as { number: number }
    const index = number - first
    if (times[index] !== undefined) times[index] += 1
  }
  return times
}

const broken = 60
/** The number of subscriptions whose cards are always declined, so that they need a person. */
const stuck = 3
const resume = 'POST /subscriptions/{id}/resume/'

const demoRecovery: RecoveryInput = {
  reasons: ['gateway_issue'],
  approval: false,
  attempts: 2,
  firstWait: '1s',
  verifyAfter: '500ms',
  // Each demo is a new incident, so the resumes of an earlier demo must not defer it.
  coolDown: 0,
}

/** Breaks subscriptions as a gateway failure would, and recovers them. True if the service agrees with the report. */
async function runDemoRecovery({
  request,
  sandbox,
  session,
  settings,
  terminal,
}: DemoContext & { request: RunRequest }): Promise<boolean> {
  const ids = breakGateway(sandbox)
  const hopeless = ids.slice(0, stuck)
  sandbox.control.addFault({ fault: { kind: 'fallBack', on: resume, ids: hopeless } })
  sandbox.control.addFault({ fault: { kind: 'reset', effect: 'done', on: resume, requests: [9] } })
  const { handle } = await startRun({ settings, session, request })
  const stopNote = 'nothing more is resumed'
  using _interrupt = stopOnInterrupt({ session, handle, terminal, stopNote })
  terminal.note(
    `A payment gateway failed, so ${broken} more subscriptions need attention. It works again, except for ${stuck} cards. A recovery resumes them:`,
  )
  const { outcomes, counts } = await followRecovery({ session, handle, terminal, settings })
  const active = ids.filter((id) => statusOf(sandbox, id) === 'active').length
  terminal.note(
    `In the sandbox, ${active} of the ${broken} are active, and ${broken - active} still need attention.`,
  )
  return active === broken - stuck && outcomes['attemptsUsedUp'] === stuck && counts.unknown === 0
}

/** Puts the first active subscriptions into the state that a gateway failure leaves. */
function breakGateway(sandbox: Sandbox): string[] {
  const all = sandbox.control.ids({ resource: 'subscriptions' }).map(String)
  const ids = all.filter((id) => statusOf(sandbox, id) === 'active').slice(0, broken)
  const fields = {
    status: 'needs_attention',
    needs_attention: new Date().toISOString(),
    needs_attention_reason: 'gateway_issue',
  }
  for (const id of ids) sandbox.control.update({ resource: 'subscriptions', id, fields })
  return ids
}

const statusOf = (sandbox: Sandbox, id: string): unknown =>
  sandbox.control.get({ resource: 'subscriptions', id })?.status
