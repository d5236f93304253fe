import type { z } from 'zod'
import { NotFound, Refused } from '../../core/billing/errors.ts'
import { listNames, listResources } from '../../core/billing/resources/lists.ts'
import {
  exportInput,
  fetchInput,
  checkExport,
  checkFetch,
  mostParallel,
  type PublishAgain,
  publishAgainInput,
  refuseIneffective,
} from '../../core/exports/input.ts'
import { reserveParts } from '../../core/exports/prune.ts'
import {
  type ExportPlan,
  findExport,
  leasesOf,
  refuseTargets,
  savePlan,
  startPlan,
} from '../../core/exports/plan.ts'
import { readAfter } from '../../core/exports/references.ts'
import { type IdSource, toRequestedIds } from '../../core/exports/requested-ids.ts'
import { toSeenClaims, toSince } from '../../core/exports/watermark.ts'
import { idRule, isId, openIdColumn } from '../../core/imports/read-ids.ts'
import { type Opened, toOpened } from '../../core/notifications/opened.ts'
import { InvalidInput } from '../../core/runs/errors.ts'
import { insideFolder } from '../../core/runs/known-run.ts'
import { parseInput } from '../../core/runs/inputs.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

/** A run that has begun: what it reads, and where it publishes it. */
export interface OpenedExport {
  plan: Opened<ExportPlan>
  /** Set when retained parts are published again; part of every step's input, besides the run's name. */
  again?: PublishAgain
  /** The lists that are read after others, whose records name theirs. */
  readAfter?: ReturnType<typeof readAfter>
  /** The lists that need no reading, and the checkpoint to publish of each. */
  checkpoints?: Partial<Record<ExportPlan['resources'][number], string>>
}

/**
 * Checks everything about an export that can be checked before it begins (input, identity, token and workspace) and
 * takes the lease of each resource and destination.
 */
export function createOpenExport(deps: ActivityDeps) {
  return async function openExport(
    { owner: execution, scheduledAt: startedAt, signal, takeLeases, watch }: StepContext,
    input: unknown,
    scheduled?: { scheduledFor: string },
  ): Promise<OpenedExport> {
    const asked = parseInput({ schema: exportInput, input, taker: 'an export' })
    const resources = [...new Set(asked.resources ?? listNames)]
    const { filters = {}, maxDeletes, maxPages, parallel = Math.min(deps.concurrency, mostParallel) } = asked
    checkExport(asked, deps.hashKey)
    const started = await startPlan({ deps, asked, resources, execution, startedAt })
    const plan: ExportPlan = { ...started, filters, maxDeletes, maxPages, parallel, ...scheduled }
    const first = listResources[resources[0] ?? 'customers']
    // Try once and let Temporal retry: its UI shows the failure, which retries in here would hide for minutes.
    const { servedAt } = await watch(deps.billing).list({
      resource: first,
      page: 1,
      pageSize: 1,
      tries: 1,
      signal,
    })
    plan.servedAt = servedAt
    await takeLeases(leasesOf(plan))
    const { lookbackSeconds } = asked
    plan.seenClaims = await toSeenClaims({ deps, plan, lists: resources })
    if (asked.mode === 'incremental')
      Object.assign(plan, await toSince({ deps, plan, lists: resources, lookbackSeconds }))
    return { plan: await toOpened(deps, await savePlan({ ...deps, plan })), readAfter: readAfter(resources) }
  }
}

/**
 * Checks everything about a fetch that can be checked before it begins (input, every id, identity, the service's answer
 * for the first id), keeps the ids, and takes the leases of the documents and destinations.
 */
export function createOpenFetch(deps: ActivityDeps) {
  return async function openFetch(
    { owner: execution, scheduledAt: startedAt, signal, takeLeases, watch }: StepContext,
    input: unknown,
  ): Promise<OpenedExport> {
    const asked = parseInput({ schema: fetchInput, input, taker: 'a fetch' })
    const { documents } = asked
    checkFetch(asked, deps.hashKey)
    const requested = await toRequestedIds(await openIds({ ...deps, asked }))
    const plan = await startPlan({ deps, asked, resources: [documents], execution, startedAt })
    await takeLeases(leasesOf(plan))
    const [id] = requested.ids
    // Try once and let Temporal retry: its UI shows the failure, which retries in here would hide for minutes.
    if (id !== undefined)
      await watch(deps.billing).getDocument(documents, id, { tries: 1, signal }).catch(unlessAnswered)
    return {
      plan: await toOpened(deps, withoutIds(await savePlan({ ...deps, plan: { ...plan, requested } }))),
    }
  }
}

/** What a workflow may know: its history has no ids of a file. */
const withoutIds = (plan: ExportPlan): ExportPlan => ({ ...plan, requested: undefined })

async function openIds(
  options: Pick<ActivityDeps, 'dataDir' | 'shared'> & { asked: z.output<typeof fetchInput> },
): Promise<IdSource> {
  const { dataDir, shared, asked } = options
  const { ids, file, idColumn: column } = asked
  if ((ids === undefined) === (file === undefined))
    throw new InvalidInput('A fetch takes either ids or a file: {"ids": ["501"]} or {"file": "ids.csv"}.')
  if (file !== undefined) {
    const path = await insideFolder({ dataDir, shared, path: file, command: 'fetch' })
    return await openIdColumn({ path, column })
  }
  if (column !== undefined) throw new InvalidInput('idColumn: only a file has columns.')
  const texts = (ids ?? []).map((id) => String(id).trim())
  if (texts.length === 0) throw new InvalidInput('ids: empty. Name at least one id.')
  const wrong = texts.filter((text) => !isId(text)).map((text) => JSON.stringify(text))
  if (wrong.length > 0) throw new InvalidInput(`ids: ${wrong.slice(0, 10).join(', ')}: not valid; ${idRule}.`)
  return { ids: () => texts, empty: 0 }
}

/** Treats "no such document" as an answer: it shows that token and workspace are right. */
function unlessAnswered(error: unknown): void {
  const isAnswer = (error instanceof Refused || error instanceof NotFound) && error.byService
  if (!isAnswer) throw error
}

/** Finds the completed reads of an earlier export and takes the leases of their resources and destinations. */
export function createOpenPublish(deps: ActivityDeps) {
  return async function openPublish({ takeLeases }: StepContext, input: unknown): Promise<OpenedExport> {
    const parsed = publishAgainInput.safeParse(input)
    if (!parsed.success) {
      throw new InvalidInput(
        'Publishing again takes {"run": "<an export>", "to": ["csv", ...], "maxDeletes": <a number or "all">,' +
          ' "schema": "<a plain name in lower case>"} and nothing else.',
      )
    }
    const { run, ...again } = parsed.data
    const kept = await findExport(deps, run)
    if (kept === undefined)
      throw new InvalidInput(
        `No parts of a run ${run} are kept (for 14 days, and always those of the last 3 runs). Export again.`,
      )
    const plan = { ...kept, ...again, to: [...new Set(again.to ?? kept.to)] }
    refuseTargets(deps, { to: plan.to })
    refuseIneffective({ ...again, to: plan.to })
    const checkpoints = await reserveParts(deps, plan)
    plan.resources = plan.resources.filter((resource) => checkpoints[resource] !== undefined)
    if (plan.resources.length === 0)
      throw new InvalidInput(`The run ${plan.run} did not finish reading any resource. Export again.`)
    const opened = await toOpened(deps, withoutIds(plan))
    await takeLeases(leasesOf(plan))
    return { plan: opened, again: { ...again, to: plan.to }, checkpoints }
  }
}
