import { expect, onTestFinished, test } from 'vitest'
import { resumeSubscription } from '../../../core/changes/kinds/resume-subscription.ts'
import { parseRecoveryInput, type RecoveryInput } from '../../../core/recoveries/input.ts'
import { noListValues } from '../../../core/recoveries/list-value.ts'
import { saveRecoveryPlan, type SnapshotNote, toRecoveryPlan } from '../../../core/recoveries/open.ts'
import { writeRecoveryReport } from '../../../core/recoveries/report.ts'
import { createRunNotes } from '../../../core/runs/run-notes.ts'
import { canaryFailed } from '../../../core/runs/view/counts.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import { openState } from '../../../core/state/open.ts'
import type { Preview } from '../../../core/recoveries/select.ts'
import { stageChanges, workspace } from '../changes/engine.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

const run = 'recovery-1'
const preview = { notResumed: {}, needsPerson: {}, listValue: noListValues() }
const seen = { sends: 3, sentAt: 1, answeredAt: 2 }

interface More {
  input?: RecoveryInput
  snapshot?: Partial<SnapshotNote>
  /** Of the other one. */
  reason?: string
}

/** The report of a recovery of two, of which one recovered and the other ended like this. */
async function reportOf(
  other: Partial<LedgerRow>,
  listReasons: string[] = [],
  { input = {}, snapshot = {}, reason = 'gateway_issue' }: More = {},
) {
  const state = await openState({ folder: await temporaryFolder() })
  onTestFinished(() => state.close())
  const { ledger } = state
  const notes = createRunNotes(state)
  const dataDir = await temporaryFolder()
  const plan = toRecoveryPlan({
    input: parseRecoveryInput(input),
    run,
    execution: { workflowId: run, runId: 'first' },
    startedAt: new Date().toISOString(),
    identity: { workspace, baseUrl: 'http://127.0.0.1:1', mode: 'live', store: state.storeId },
    settleMs: 20,
  })
  await saveRecoveryPlan({ dataDir, notes, plan, input })
  const changes = ['sub_1', 'sub_2'].map((id, at) => ({
    row: at + 1,
    body: { id, snapshot: { value: { amounts: {} } } },
    breakerKey: at === 0 ? 'gateway_issue' : reason,
  }))
  await stageChanges({ ledger, run, kind: resumeSubscription, changes })
  const proven = listReasons.length === 0
  await notes.write(run, { snapshot: { staged: 2, proven, reasons: listReasons, preview, ...snapshot } })
  const done = { state: 'done', outcome: 'recovered', ...seen } as const
  for (const [at, patch] of [done, other].entries()) {
    const row = await ledger.row({ run, row: at + 1 })
    await ledger.move({ id: row!.id, from: ['staged'], patch })
  }
  await notes.write(run, { ended: { how: 'finished', at: new Date().toISOString() } })
  const { result, report, outward: view } = await writeRecoveryReport({ ledger, notes, plan, dataDir })
  const problems = view.problems?.map(({ text }) => text)
  return {
    ...result,
    word: view.verdict?.word,
    problems,
    named: report.coolingDown,
    first: report.first,
    view,
  }
}

test('a run whose every result was seen needs a person, although it is not proven', async () => {
  expect(await reportOf({ state: 'parked', outcome: 'attemptsUsedUp', ...seen })).toMatchObject({
    verdict: 'unproven',
    resultsSeen: true,
    word: 'needs a person',
    summary: '1 of 2 recovered; 1 needs a person',
  })
})

test.each<[Partial<LedgerRow>, string, string[]]>([
  [{ state: 'done', outcome: 'alreadyFine' }, '1 of 2 recovered; 1 already fine; proven', []],
  [{ state: 'dropped', outcome: 'gone' }, '1 of 2 recovered; 1 cancelled or finalized meanwhile; proven', []],
  [
    { state: 'dropped', outcome: 'coolingDown' },
    '1 of 1 recovered; proven; 1 resumed recently and left alone',
    ['1 resumed recently and left alone; recovery.csv says until when.'],
  ],
])('a subscription that needed no resume is proven, and named: %o', async (other, summary, problems) => {
  expect(await reportOf(other)).toMatchObject({ verdict: 'proven', word: 'proven', summary, problems })
})

test('a subscription that was left alone is named in the report, and not in what Temporal keeps', async () => {
  const { named, view } = await reportOf({ state: 'dropped', outcome: 'coolingDown', error: 'until noon' })
  expect(named).toEqual([{ subscription: 'sub_2', message: 'until noon' }])
  expect(JSON.stringify(view)).not.toMatch(/sub_2|until noon/)
})

test.each<[string, Partial<LedgerRow>, string[]?]>([
  ['a resume whose outcome nobody saw', { state: 'parked', outcome: 'notFound', ...seen }],
  ['a resume without an answer', { state: 'parked', outcome: 'fellBack', sends: 1, answeredAt: null }],
  ['a subscription that was not tried', { state: 'dropped', outcome: 'notTried' }],
  [
    'a list that is not proven',
    { state: 'parked', outcome: 'attemptsUsedUp', ...seen },
    ['the list takes more than 3 requests'],
  ],
  [
    'a list that is not proven, although all of it recovered',
    { state: 'done', outcome: 'recovered', ...seen },
    ['the list takes more than 3 requests'],
  ],
])('a run with %s is unproven, and not merely for a person', async (_, other, listReasons) => {
  expect(await reportOf(other, listReasons)).toMatchObject({
    verdict: 'unproven',
    resultsSeen: false,
    word: 'unproven',
    summary: expect.stringContaining('unproven: '),
  })
})

test.each<[string, Partial<LedgerRow>, More, string[]]>([
  ['the service refused', { state: 'rejected', outcome: 'refused', sends: 1 }, {}, ['sub_2']],
  ['the run only reports', { state: 'parked', outcome: 'needsPerson' }, { reason: 'without_reference' }, []],
])(
  'a subscription that %s is named among those that need attention only if it was tried',
  async (_, other, more, names) => {
    const { first, reported } = await reportOf(other, [], more)
    expect(first.map((one) => 'subscription' in one && one.subscription)).toEqual(names)
    expect(reported).toBe(names.length === 0 ? 1 : 0)
  },
)

const done = { state: 'done', outcome: 'recovered', ...seen } as const
const notTried = { state: 'dropped', outcome: 'notTried' } as const
const skipped = { ...notTried, error: canaryFailed }
const input = { canary: 0 }
const left = { ...preview, notResumed: { notTried: 3 } } as unknown as Preview

test.each<[string, Partial<LedgerRow>, More, object | undefined]>([
  ['nothing', done, {}, undefined],
  ['a list that it read in part', done, { snapshot: { capped: true, count: 10_000 } }, { maxPages: 155 }],
  ['a list of unknown length', done, { snapshot: { capped: true } }, { maxPages: 100 }],
  ['a subscription that was not tried', notTried, {}, {}],
  ['subscriptions beyond its maxChanges', done, { snapshot: { preview: left } }, {}],
  ['a subscription that is not sent yet', { state: 'staged' }, {}, {}],
  ['those of a failed canary alone', skipped, { reason: 'biller_issue' }, undefined],
])('a recovery that leaves %s is continued with what is needed for it', async (_, other, more, added) => {
  const { continueWith } = await reportOf(other, [], { input, ...more })
  expect(continueWith).toEqual(added && { ...input, ...added })
})

test('no input continues a recovery whose every reason had a canary that failed', async () => {
  const more = { input: { reasons: ['gateway_issue' as const] }, snapshot: { capped: true } }
  expect((await reportOf(skipped, [], more)).continueWith).toBeUndefined()
})
