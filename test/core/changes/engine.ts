import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { type Billing, type BillingSettings, createBilling } from '../../../core/billing/client.ts'
import type { BreakerStates } from '../../../core/changes/send/breaker.ts'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { watchLedger } from '../../../core/changes/old-ledger.ts'
import { type Limits, type SegmentOptions, runSegment } from '../../../core/changes/send/segment.ts'
import { takeRight } from '../../../core/changes/send/send-right.ts'
import type { Attempts } from '../../../core/changes/reconcile.ts'
import { type ChangeToStage, toNewChange } from '../../../core/changes/staged-changes.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import { type Sandbox, createSandbox } from '../../../sandbox/sandbox.ts'
import type { Ledger } from '../../../core/state/ledger/ledger.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import { openState } from '../../../core/state/open.ts'
import type { Mode } from '../../../core/state/schema.ts'
import { leaseOf } from '../state/sender-of.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

const hourMs = 3_600_000
export const workspace = 'acc_sandbox'
export const attempts: Attempts = { most: 3, waitsMs: [0] }

/** A sandbox without records, ended after the test. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const counts = { customers: 0, subscriptions: 0, plans: 0, retentions: 0, orders: 0, ...options.counts }
  const sandbox = await createSandbox({ ...options, counts })
  onTestFinished(() => sandbox.close())
  return sandbox
}

export const clientOf = (sandbox: Sandbox, settings: Partial<BillingSettings> = {}): Billing =>
  createBilling({
    baseUrl: sandbox.url,
    workspace: sandbox.workspace,
    testMode: false,
    token: async () => sandbox.token,
    rate: { requestsPerSecond: Infinity },
    concurrency: 8,
    timeoutSeconds: 5,
    readWaitMs: () => 1,
    ...settings,
  })

/** Stages changes as a run does. */
export const stageChanges = async ({
  ledger,
  run,
  kind,
  changes,
  mode = 'live',
}: {
  ledger: Ledger
  run: string
  kind: ChangeKind
  changes: readonly ChangeToStage[]
  mode?: Mode
}) =>
  ledger.stage({
    run,
    workspace,
    mode,
    kind: kind.name,
    repeats: kind.repeats,
    changes: changes.map((change) => toNewChange({ kind, change })),
  })

interface EngineOptions {
  kind: ChangeKind
  sandbox: Sandbox
  folder?: string
  /** The run's own folder, which a backup of the state does not put back. */
  beside?: string
  billing?: Billing
  mode?: Mode
  run?: string
  settleMs?: number
  concurrency?: number
  limits?: Partial<Limits>
  /** Whether the process still holds the folder's lock. Default: always. */
  isHeld?: () => boolean
}

/** Starts the parts of a run, over a real state on disk and a real service behind a real socket. */
export async function startEngine({
  kind,
  sandbox,
  folder: given,
  beside,
  billing = clientOf(sandbox),
  mode = 'live',
  run = 'run-1',
  settleMs = 20,
  concurrency = 4,
  limits = {},
  isHeld,
}: EngineOptions) {
  const folder = given ?? (await temporaryFolder())
  const state = await openState({ folder, ...(isHeld && { isHeld }) })
  onTestFinished(() => state.close())
  const { ledger, leases } = state
  const runFolder = beside ?? (await temporaryFolder())
  let breakers: BreakerStates = {}
  let claims = 0
  /** Sends with a ledger that must know every claim of before, as Temporal does. */
  const watch = async <T>(work: (watched: Ledger) => Promise<T>): Promise<T> => {
    const watched = await watchLedger({ ledger, mark: undefined, run, told: { rows: 0, claims } })
    try {
      return await work(watched.ledger)
    } finally {
      claims = watched.claims
    }
  }

  const stage = (changes: readonly ChangeToStage[]) => stageChanges({ ledger, run, mode, kind, changes })

  /** How far the run's clock is ahead. */
  let aheadMs = 0

  /** A segment of the run, as its worker runs it. */
  const segment = (options: Partial<SegmentOptions> = {}) =>
    watch(async (watched) => {
      const step = await runSegment({
        ledger: { ...watched, now: () => watched.now() + aheadMs },
        run,
        kind,
        billing,
        settleMs,
        attempts,
        canarySize: { size: 0 },
        limits: { concurrency, maxFailureShare: 1, ...limits },
        breakers,
        sender: options.sender ?? (await takeRight({ ledger, run, lease: leaseOf(run) })),
        ms: 60_000,
        signal: new AbortController().signal,
        ...options,
      })
      ;({ breakers } = step)
      return step
    })

  /** A segment in which no lookup is due yet, and the outcome of the rows that it sent. */
  const send = async (options: Partial<SegmentOptions> = {}) => {
    const before = await rows()
    const step = await segment({ settleMs: hourMs, verifyMs: hourMs, ...options })
    const after = await rows()
    const number = (which: (row: LedgerRow, was: LedgerRow | undefined) => boolean) =>
      after.filter((row, index) => which(row, before[index])).length
    return {
      ...step,
      begun: number((row, was) => row.claims > (was?.claims ?? 0)),
      done: number((row, was) => row.state === 'done' && was?.state !== 'done'),
      failed: number((row, was) => row.event === 'failure' && row.eventAt !== was?.eventAt),
      unknown: number(
        (row, was) => row.state === 'unknown' && row.event !== 'failure' && row.claims !== was?.claims,
      ),
    }
  }

  /** Looks up what is unknown until nothing is. */
  const settle = (options: Partial<SegmentOptions> = {}) => segment({ lookupsOnly: true, ...options })

  /** Advances the run's clock until unknown rows are due, and looks them up once. */
  const lookOnce = (options: Partial<SegmentOptions> = {}) => {
    aheadMs += 2 * hourMs
    return settle({ settleMs: hourMs, verifyMs: hourMs, ...options })
  }

  /** As a workflow does it: segments until nothing is left to do. */
  const finish = async () => {
    for (;;) {
      const { ended, nextAt = 0 } = await segment()
      if (ended !== 'waiting') return ended
      await until(nextAt)
    }
  }

  const rows = async () => {
    const all: LedgerRow[] = []
    for await (const row of ledger.rows({ run })) all.push(row)
    return all
  }
  return {
    folder,
    state,
    ledger,
    leases,
    run,
    kind,
    billing,
    runFolder,
    stage,
    segment,
    send,
    settle,
    lookOnce,
    finish,
    rows,
  }
}

/** A run whose rows are staged, and a service of its own. */
export async function startRun(
  kind: ChangeKind,
  rows: readonly ChangeToStage[] | ((sandbox: Sandbox) => readonly ChangeToStage[]),
  options: Pick<EngineOptions, 'concurrency' | 'limits' | 'settleMs' | 'mode' | 'isHeld'> &
    SandboxOptions & { billing?: (sandbox: Sandbox) => Billing } = {},
) {
  const { concurrency = 4, limits = {}, settleMs = 20, mode = 'live', ...others } = options
  const { isHeld = () => true, billing = clientOf, ...service } = others
  const sandbox = await startSandbox(service)
  const how = { concurrency, limits, settleMs, mode, isHeld, billing: billing(sandbox) }
  const engine = await startEngine({ kind, sandbox, ...how })
  await engine.stage(typeof rows === 'function' ? rows(sandbox) : rows)
  return { sandbox, engine }
}

/** Claims the first row, as a worker does that is killed before it sends it. */
export async function claimFirst({ ledger, run, rows }: Awaited<ReturnType<typeof startEngine>>) {
  const [row] = await rows()
  const sender = await takeRight({ ledger, run, lease: leaseOf(run) })
  await ledger.claim({ sender, id: row!.id, sends: 0, at: ledger.now() })
  return row!
}

/** Waits for a time that the engine itself named. */
const until = (at: number) =>
  new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, at - Date.now() + 1))
  })

export const retention = (number: number, more: object = {}) => ({
  supplier: `sup_${number % 7}`,
  document: 7 + (number % 3),
  number,
  date: '2026-03-01',
  total: JSON.rawJSON(`${number}.50`),
  lines: [{ name: 'Honorarios', amount: JSON.rawJSON('1500.10'), quantity: 2 }],
  ...more,
})

export const retentionRows = (count: number): ChangeToStage[] =>
  Array.from({ length: count }, (_, index) => ({ row: index + 1, body: retention(index + 1) }))

/** The service refuses these: their date is none. */
export const refusedFrom = (first: number, rows: ChangeToStage[]): ChangeToStage[] =>
  rows.map((row) => (row.row < first ? row : { ...row, body: { ...row.body, date: 'never' } }))

export const addonRows = (count: number): ChangeToStage[] =>
  Array.from({ length: count }, (_, index) => ({
    row: index + 1,
    body: { name: `Addon ${index + 1}`, description: 'x', currency: 'CLP', amount: 10 + index },
  }))

/** Updates of the first contacts of the sandbox. */
export const contactRows = (sandbox: Sandbox, count: number, fields: object): ChangeToStage[] =>
  [...sandbox.control.records({ resource: 'customers' })]
    .flatMap((text) => (JSON.parse(text) as { contacts: { id: string }[] }).contacts)
    .slice(0, count)
    .map(({ id }, index) => ({ row: index + 1, body: { id, ...fields } }))

/** A service with one subscription, which needs attention. */
export const oneBroken = { counts: { subscriptions: 1, customers: 1, plans: 1 }, needsAttention: 1 }

/** Resumes of the first subscriptions of the sandbox that need attention. */
export const resumeRows = (sandbox: Sandbox, count = 1, more: Partial<ChangeToStage> = {}): ChangeToStage[] =>
  [...sandbox.control.records({ resource: 'subscriptions' })]
    .map((text) => JSON.parse(text) as { id: string; customer: string; status: string })
    .filter(({ status }) => status === 'needs_attention')
    .slice(0, count)
    .map(({ id, customer }, index) => ({ row: index + 1, body: { id, customer }, ...more }))

/** The requests of a method that the service got. */
export const requestsOf = (sandbox: Sandbox, method: string) =>
  sandbox.control.requests().filter((request) => request.method === method)

/** A retention that somebody else makes, now or at that time in microseconds; its id. */
export const insertRetention = (sandbox: Sandbox, fields: object, created?: number): string =>
  String(
    sandbox.control.insert({
      resource: 'retentions',
      fields: { ...fields, test_mode: false },
      ...(created !== undefined && { created }),
    }),
  )

/** How often each number (or name) is in the service. */
export function copies(
  sandbox: Sandbox,
  resource: 'retentions' | 'addons',
  field: string,
): Map<string, number> {
  const counts = new Map<string, number>()
  for (const text of sandbox.control.records({ resource })) {
    const record = JSON.parse(text) as Record<string, unknown>
    const name = String(record[field])
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}

/** A service whose lists are in no order, and which repeats their last page endlessly as if one more record followed. */
export const withoutEnd = (billing: Billing, size: number): Billing => ({
  ...billing,
  list: async ({ ordering: _ignored, ...query }) => {
    const { page, pageSize, filters = {} } = query
    if (Object.keys(filters).length > 0) return await billing.list(query)
    const there = await billing.list({ ...query, page: Math.min(page, Math.ceil(size / pageSize)) })
    return { ...there, count: page * pageSize + 1, next: `?page=${page + 1}` }
  },
})

/** A cache in front of the service that serves each list four times more, as four minutes old, whatever a request says. */
export async function startCache(sandbox: Sandbox): Promise<string> {
  const kept = new Map<string, { body: string; served: number }>()
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { url = '', method = '', headers } = request
    const known = method === 'GET' ? kept.get(url) : undefined
    if (known !== undefined && known.served++ < 4)
      return response.writeHead(200, { 'content-type': 'application/json', age: '240' }).end(known.body)
    const { connection: _hop, ...others } = headers
    const reply = await fetch(`${sandbox.url}${url}`, {
      method,
      headers: others as Record<string, string>,
      ...(method !== 'GET' && { body: await text(request) }),
    }).catch(() => undefined)
    if (reply === undefined) return request.socket.destroy()
    const body = await reply.text()
    if (method === 'GET') kept.set(url, { body, served: 0 })
    return response.writeHead(reply.status, { 'content-type': 'application/json' }).end(body)
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
