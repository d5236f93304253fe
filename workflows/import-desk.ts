import { condition, defineQuery, defineUpdate, proxyActivities, setHandler } from '@temporalio/workflow'
import type { ImportResult } from '../activities/close-import.ts'
import type { Activities } from '../activities/index.ts'
import type { ImportLimits, ImportPlan } from '../imports/import-plan.ts'
import type { Decision } from '../imports/run-notes.ts'
import type { ImportProgress, WaitingFor } from './import-details.ts'
import { throwInOwnWords } from './own-words.ts'
import type { RunControl } from './run-control.ts'
import {
  type Approval,
  checkApproval,
  checkLimits,
  checkResolution,
  decisionOf,
  type LimitsChange,
  type ReportQuestion,
  type Resolution,
} from './import-messages.ts'

const { noteDecision, resolveRow } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1s', maximumInterval: '10s', maximumAttempts: 5 },
})

const approve = defineUpdate<string, [Approval]>('approve')
const setLimits = defineUpdate<ImportLimits, [LimitsChange]>('setLimits')
const resolve = defineUpdate<string, [Resolution]>('resolve')
const status = defineQuery<ImportProgress>('status')
const report = defineQuery<unknown, [ReportQuestion | undefined]>('report')

const pageRows = 100

/** Where people talk to a running import: what they may ask of it, and what it asks of them. */
export interface ImportDesk {
  plan: ImportPlan | undefined
  result: ImportResult | undefined
  /** A person has changed rows of the run, so that there may be something to send again. */
  resolved: number
  /** Waits for `approve`. False where nobody came in time, or the run was stopped. */
  ask(question: { what: WaitingFor; count?: number; seconds: number }): Promise<boolean>
}

interface Parties {
  progress: ImportProgress
  show: () => void
  control: RunControl
}

export function openDesk(parties: Parties): ImportDesk {
  const { progress, show, control } = parties
  const approval = { given: false }
  const desk: ImportDesk = {
    plan: undefined,
    result: undefined,
    resolved: 0,
    async ask({ what, count, seconds }) {
      approval.given = false
      const until = new Date(Date.now() + seconds * 1000).toISOString()
      progress.waitingFor = { what, until, ...(count !== undefined && { count }) }
      progress.phase = 'waiting for approval'
      show()
      await condition(() => approval.given || control.stopping, seconds * 1000)
      delete progress.waitingFor
      show()
      return approval.given
    },
  }
  takeApprovals({ ...parties, desk, approval })
  takeLimits({ ...parties, desk })
  takeResolutions(desk)
  setHandler(status, () => progress, {
    description: 'Where the run is: its phase, its counts, its limits and what it waits for.',
  })
  setHandler(report, (question) => toPage({ desk, progress, question }), {
    description:
      'Row numbers by outcome, a page of 100 at a time: {"outcome": "parked", "page": 1}. Done rows are in results.csv.',
  })
  return desk
}

type Desk = Parties & { desk: ImportDesk }

/** People may speak before the run has settled what it does. */
async function planned(desk: ImportDesk): Promise<ImportPlan> {
  await condition(() => desk.plan !== undefined)
  return desk.plan!
}

async function note(desk: ImportDesk, decision: Omit<Decision, 'at'>): Promise<void> {
  const at = new Date().toISOString()
  const summary = `note what ${decision.by} said`
  const input = { plan: await planned(desk), decision: { at, ...decision } }
  await noteDecision.executeWithOptions({ summary }, [input]).catch(throwInOwnWords)
}

function takeApprovals({ desk, progress, approval }: Desk & { approval: { given: boolean } }): void {
  setHandler(
    approve,
    async ({ by, why }) => {
      await note(desk, { about: progress.waitingFor?.what ?? 'approval', by, why })
      approval.given = true
      return `approved by ${by}`
    },
    {
      description:
        'Goes on with what the run waits for: {"by": "your name", "why": "..."}; for deletes also "count", the number of them. Who and why go into the report and are not checked.',
      validator: (said: unknown) => checkApproval(said, progress),
    },
  )
}

function takeLimits({ desk, progress, show, control }: Desk): void {
  setHandler(
    setLimits,
    async ({ by = 'someone', why = '', ...limits }) => {
      const words = Object.entries(limits).map(([name, value]) => `${name} ${value}`)
      await note(desk, { about: 'limits', by, why: [words.join(', '), why].filter(Boolean).join(': ') })
      Object.assign(progress.limits, limits)
      control.interrupt()
      show()
      return progress.limits
    },
    {
      description:
        'Changes bounds of the run: {"requestsPerSecond": 2, "concurrency": 1, "maxChanges": 500, "maxFailures": 10, "maxFailureShare": 0.2}, any of them.',
      validator: checkLimits,
    },
  )
}

function takeResolutions(desk: ImportDesk): void {
  setHandler(
    resolve,
    async (said) => {
      const { row, by, why } = said
      const input = { plan: await planned(desk), row, decision: decisionOf(said), by, why }
      await resolveRow.executeWithOptions({ summary: `resolve row ${row}` }, [input]).catch(throwInOwnWords)
      desk.resolved += 1
      return `row ${row} resolved by ${by}`
    },
    {
      description:
        'Says what became of a parked row: {"row": 17, "exists": "<id>"} or "absent": true (it is sent again) or "drop": true, with "by" and "why".',
      validator: checkResolution,
    },
  )
}

function toPage({
  desk,
  progress,
  question,
}: {
  desk: ImportDesk
  progress: ImportProgress
  question: ReportQuestion | undefined
}) {
  const { outcome, page = 1 } = question ?? {}
  const { result } = desk
  if (outcome === undefined) return { run: progress.run, ...(result ?? { counts: progress.counts }) }
  const rows = result?.rows[outcome] ?? []
  const from = (page - 1) * pageRows
  return {
    outcome,
    count: result?.counts[outcome] ?? progress.counts?.[outcome] ?? 0,
    page,
    pages: Math.max(1, Math.ceil(rows.length / pageRows)),
    rows: rows.slice(from, from + pageRows),
    files: result?.files ?? {},
  }
}
