import type { Command } from 'commander'
import { parse } from 'csv-parse/sync'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type ExportDocument, isPublished } from '../../core/exports/report.ts'
import { formatTable } from '../../core/runs/view/format.ts'
import { connector } from '../../core/runs/view/shell.ts'
import { createSandbox, type Sandbox } from '../../sandbox/sandbox.ts'
import { readSettings, type Settings } from '../../worker/settings/settings.ts'
import { addExamples } from '../commands/options.ts'
import { openLocalSession } from '../session/local-session.ts'
import { inSession, type Session } from '../session/session.ts'
import { followExport, followImport, followRecovery } from '../runs/follow.ts'
import { startImport, uploadImport } from '../runs/import.ts'
import { exportRequest, recoveryRequest, startRun, stopOnInterrupt } from '../runs/jobs.ts'
import { exitCodes } from '../terminal/failures.ts'
import { onInterrupt, type Terminal } from '../terminal/terminal.ts'
import type { RecoveryInput } from '../../core/recoveries/input.ts'

const token = 'demo-token'
const workspace = 'acc_demo'

const customers = 5_000

/** A read that trusts page numbers loses a record with nearly every deletion. */
const perRequest = { deletes: 1, inserts: 1, updates: 1 }
const drift = { customers: { perRequest }, subscriptions: { perRequest }, retentions: { perRequest } }

export function configure(command: Command, terminal: Terminal): void {
  command.action(async () => runDemo(terminal))
  addExamples(command, 'run', { demo: 'on a terminal, everything runs on until Ctrl-C, to look around' })
}

/** What each part of the demo runs with. */
interface DemoContext {
  sandbox: Sandbox
  session: Session
  settings: Settings
  /** Keeps the result of the part for the result of this command. */
  terminal: Terminal
  isInterrupted: () => boolean
}

/** In order; each returns whether it ended as it should. */
const parts = { export: runDemoExport, import: runDemoImport, recovery: runDemoRecovery }

async function runDemo(terminal: Terminal): Promise<void> {
  const counts = { customers, subscriptions: 2_000, plans: 60, retentions: 1_000 }
  const sandbox = await createSandbox({ token, workspace, counts, drift, needsAttention: 0 })
  terminal.note(
    `A sandbox plays the billing service, and with each request loses and gains a record: ${sandbox.url}`,
  )
  const settings = demoSettings(sandbox.url)
  await using closing = new AsyncDisposableStack()
  closing.defer(() => sandbox.close())
  // The folder is new, so every run in it is of this demo.
  const session = await openLocalSession({ settings, terminal, mayWrite: () => true })
  await inSession(session, async () => {
    terminal.identity(settings.billing)
    // Ctrl-C stops the run of a part; those that follow do not begin.
    let interrupted = false
    using _interrupt = onInterrupt({ first: () => void (interrupted = true), second: () => undefined })
    const documents: Record<string, unknown> = {}
    const succeeded: boolean[] = []
    for (const [name, run] of Object.entries(parts)) {
      if (interrupted) break
      const result: Terminal['result'] = ({ document }) => void (documents[name] = document)
      const context = { sandbox, session, settings, isInterrupted: () => interrupted }
      succeeded.push(await run({ ...context, terminal: { ...terminal, result } }))
    }

    const { report: page } = (documents['export'] ?? {}) as Partial<ExportDocument>
    const isKept = terminal.isInteractive && !interrupted
    const links = [
      ...(page ? [`The page of the export: ${page}`] : []),
      ...(isKept ? [`Each run, step by step, until Ctrl-C: ${session.uiUrl}`] : []),
      `With your own service: ${connector`init`}`,
    ]
    terminal.result({ document: documents, text: `\n${links.join('\n')}` })
    // Rejected rows and subscriptions that fall back are part of the demo, so they are not a failure.
    process.exitCode = interrupted || !succeeded.every(Boolean) ? exitCodes.unproven : exitCodes.proven
    if (isKept) await untilInterrupted()
  })
}

function demoSettings(baseUrl: string): Settings {
  const { env } = process
  // A folder for each demo: what an earlier one has sent must not be part of the story.
  const name = new Date().toISOString().slice(0, 19).replaceAll(':', '-')
  const dataDir = join(env['INIT_CWD'] ?? process.cwd(), 'data', 'demo', name)
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

/** Exports all four lists, beside a plain loop over the pages of one. True if all of them are proven. */
async function runDemoExport(context: DemoContext): Promise<boolean> {
  const { sandbox, terminal } = context
  terminal.note(`\n1. An export of all lists, beside a plain loop over the pages of the customers:`)
  const before = new Set(customerIds(sandbox))
  const read = await readPlainly(sandbox.url)
  if (context.isInterrupted()) return false
  const lostByLoop = countLost({ sandbox, before, read })
  const beforeExport = new Set(customerIds(sandbox))
  const { handle } = await startRun({ ...context, request: exportRequest({ ...context, input: {} }) })
  using _interrupt = stopOnInterrupt({ ...context, handle, stopNote: 'nothing more is read or published' })
  const report = await followExport({ ...context, handle })
  const isProven = report.verdict === 'proven'
  const published = report.exports.filter(isPublished)
  const rows = published.map(({ resource, verdict, records }) => [resource, verdict, records])
  // Ctrl-C may have stopped it before anything was published.
  const table = () => formatTable({ head: ['list', 'verdict', 'records'], rows })
  terminal.note(rows.length === 0 ? report.summary : table())
  const where = published.find(({ resource }) => resource === 'customers')?.where
  if (where === undefined) return isProven
  const csv = await readFile(join(where, 'customers.csv'), 'utf8')
  const exported = parse<{ id: string }>(csv, { columns: true }).map(({ id }) => id)
  const lost = countLost({ sandbox, before: beforeExport, read: new Set(exported) })
  terminal.note(`The plain loop has lost ${lostByLoop} customers without noticing, the export ${lost}.`)
  terminal.note(await judge(published.map(({ where }) => where)))
  return isProven
}

/** In the package, this program is in `dist`, and the checker is where it is here. */
const checker = ['..', '../../../scripts']
  .map((to) => join(import.meta.dirname, to, 'check-certificate.py'))
  .find(existsSync)!

/** What the checker says of exports, which shares no code with the connector. */
async function judge(folders: readonly string[]): Promise<string> {
  const said = folders.map(async (folder) => {
    try {
      return (await promisify(execFile)('python3', [checker, folder])).stdout.trim()
    } catch (error) {
      const { stdout } = error as { stdout?: string }
      return stdout?.trim() || 'NOT CHECKED there is no python3 here'
    }
  })
  return [
    'scripts/check-certificate.py, which shares no code with the connector, says of each:',
    ...(await Promise.all(said)),
  ].join('\n')
}

const customerIds = (sandbox: Sandbox) => sandbox.control.ids({ resource: 'customers' }).map(String)

/** How many of the customers that were there before and are still there were not read. */
function countLost(of: { sandbox: Sandbox; before: Set<string>; read: Set<string> }): number {
  return customerIds(of.sandbox).filter((id) => of.before.has(id) && !of.read.has(id)).length
}

/** Reads the customers page by page, as a reader does that trusts the list to stand still. */
async function readPlainly(url: string): Promise<Set<string>> {
  const headers = { authorization: `Token ${token}`, 'x-simple-workspace': workspace }
  const read = new Set<string>()
  for (let page = 1; ; page += 1) {
    const address = `${url}/customers/?ordering=created&page_size=100&page=${page}`
    const body = (await (await fetch(address, { headers })).json()) as Page
    for (const { id } of body.results) read.add(String(id))
    if (body.next === null) return read
  }
}

interface Page {
  results: { id: string | number }[]
  next: string | null
}

async function untilInterrupted(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  using _interrupt = onInterrupt({ first: resolve, second: () => process.exit(1) })
  await promise
}

/** The number of valid rows, enough for a canary. */
const validRows = 24
const post = 'POST /retentions/'

/**
 * Imports a realistic file (valid rows, a date that does not exist, and a duplicate row) while a response and a request
 * are lost. True if the run is proven and the sandbox agrees.
 */
async function runDemoImport(context: DemoContext): Promise<boolean> {
  const { sandbox, settings, terminal } = context
  const file = join(settings.dataDir, 'retentions.csv')
  await writeFile(file, retentionsCsv)
  const input = { kind: 'retentions', onInvalid: 'skip' } as const
  const order = { ...context, file, reading: [], mapping: {}, input, yes: true, detach: false }
  const uploaded = await uploadImport(order)
  // Other clients keep creating retentions, but none deletes ours.
  sandbox.control.setDrift({ drift: { retentions: { perSecond: { inserts: 10, updates: 10 } } } })
  sandbox.control.addFault({ fault: { kind: 'reset', effect: 'done', on: post, requests: [8] } })
  sandbox.control.addFault({ fault: { kind: 'reset', effect: 'none', on: post, requests: [12] } })
  const { handle } = await startImport({ ...order, uploaded })
  const stopNote = 'everything that was sent is on record'
  using _interrupt = stopOnInterrupt({ ...context, handle, stopNote })
  terminal.note(
    `\n2. An import of ${validRows + 3} rows, three invalid. Two connections break, one after the service has the row:`,
  )
  const { verdict, summary } = await followImport({ ...context, handle })
  const times = timesOf(sandbox)
  const once = times.filter((count) => count === 1).length
  terminal.note(summary)
  terminal.note(
    `The sandbox has ${once} of the ${validRows} valid rows exactly once, and ${times.length - once} not once.`,
  )
  return verdict === 'proven' && once === validRows
}

const firstNumber = 70_001

const toRow = (index: number, date = `2026-03-${String(1 + index).padStart(2, '0')}`) =>
  `sup_${index % 5},${index % 3 === 0 ? 8 : 7},${firstNumber + index},${date},${100 + index}.50,Honorarios,${100 + index}.50,1`

/** Valid rows, a date that does not exist, and a row twice. */
const retentionsCsv = [
  'supplier,document,number,date,total,lines.1.name,lines.1.amount,lines.1.quantity',
  ...Array.from({ length: validRows }, (_, index) => toRow(index)),
  toRow(validRows, '2026-02-30'),
  toRow(validRows + 1),
  toRow(validRows + 1),
  '',
].join('\n')

/** Counts how often the service has each of the valid rows. */
function timesOf(sandbox: Sandbox): number[] {
  const times = Array.from({ length: validRows }, () => 0)
  for (const text of sandbox.control.records({ resource: 'retentions' })) {
    const { number } = JSON.parse(text) as { number: number }
    const index = number - firstNumber
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
}

/** Breaks subscriptions as a gateway failure would, and recovers them. True if the service agrees with the report. */
async function runDemoRecovery(context: DemoContext): Promise<boolean> {
  const { sandbox, terminal } = context
  const ids = breakGateway(sandbox)
  const hopeless = ids.slice(0, stuck)
  sandbox.control.addFault({ fault: { kind: 'fallBack', on: resume, ids: hopeless } })
  sandbox.control.addFault({ fault: { kind: 'reset', effect: 'done', on: resume, requests: [9] } })
  const request = recoveryRequest({ ...context, input: demoRecovery })
  const { handle } = await startRun({ ...context, request })
  using _interrupt = stopOnInterrupt({ ...context, handle, stopNote: 'nothing more is resumed' })
  terminal.note(
    `\n3. A recovery: after an outage, ${broken} subscriptions need attention; ${stuck} cards are still declined:`,
  )
  const { outcomes, counts, summary } = await followRecovery({ ...context, handle })
  terminal.note(summary)
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
