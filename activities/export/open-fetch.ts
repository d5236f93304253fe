import type { z } from 'zod'
import { NotFound, Refused } from '../../core/billing/errors.ts'
import { documentResources } from '../../core/billing/resources/lists.ts'
import { idRule, isId, openIdColumn } from '../../core/imports/read-ids.ts'
import { checkPrivacy } from '../../core/tables/privacy.ts'
import { type IdSource, keepAskedIds, readAskedIds } from '../../core/exports/requested-ids.ts'
import { type ExportPlan, leasesOf, savePlan } from '../../core/exports/plan.ts'
import type { ActivityDeps } from '../deps.ts'
import { InvalidInput } from '../../core/runs/errors.ts'
import { toNonRetryable } from '../../core/imports/errors.ts'
import { insideFolder } from '../../core/runs/inside-folder.ts'
import { fetchInput } from '../../core/exports/input.ts'
import { parseInput } from '../../core/runs/parse-input.ts'
import { startPlan } from '../../core/exports/start-plan.ts'
import { type Opened, toOpened } from '../../core/notifications/opened.ts'
import type { StepContext } from '../step.ts'

/**
 * Checks everything about a fetch that can be checked before it begins (input, every id, identity, the service's answer
 * for the first id), keeps the ids, and takes the leases of the documents and destinations.
 */
export function createOpenFetch(deps: ActivityDeps) {
  return async function openFetch(
    { owner: execution, scheduledAt: startedAt, signal, takeLeases, folder, watch }: StepContext,
    input: unknown,
  ): Promise<Opened<ExportPlan>> {
    const asked = parseInput({ schema: fetchInput, input, taker: 'a fetch' })
    const { documents, exclude = [], hash = [] } = asked
    const resource = documentResources[documents]
    checkPrivacy([resource], { exclude, hash, hashKey: deps.hashKey })
    if (asked.file !== undefined) await folder.fetchFile(asked.file)
    const source = await openIds({ dataDir: folder.dataDir, asked })
    const plan = await startPlan({ deps, asked, resources: [documents], execution, startedAt })
    const ids = await keepAskedIds({ ...deps, run: plan.run, source }).catch(refuse)
    plan.ids = ids
    await takeLeases(leasesOf(plan))
    for await (const id of readAskedIds({ ...deps, run: plan.run, asked: ids, skip: 0 })) {
      // Try once and let Temporal retry: its UI shows the failure, which retries in here would hide for minutes.
      await resource.get(watch(deps.billing), id, { tries: 1, signal }).catch(unlessAnswered)
      break
    }
    return await toOpened(deps, await savePlan({ ...deps, plan }))
  }
}

async function openIds(options: { dataDir: string; asked: z.output<typeof fetchInput> }): Promise<IdSource> {
  const { dataDir, asked } = options
  const { ids, file, column } = asked
  if ((ids === undefined) === (file === undefined))
    throw new InvalidInput('A fetch takes either ids or a file: {"ids": ["501"]} or {"file": "ids.csv"}.')
  if (file !== undefined) {
    const path = await insideFolder({ dataDir, path: file, command: 'fetch' })
    return await openIdColumn({ path, column }).catch(refuse)
  }
  if (column !== undefined) throw new InvalidInput('column: only a file has columns.')
  const texts = (ids ?? []).map((id) => String(id).trim())
  if (texts.length === 0) throw new InvalidInput('ids: empty. Name at least one id.')
  const wrong = texts.filter((text) => !isId(text)).map((text) => JSON.stringify(text))
  if (wrong.length > 0) throw new InvalidInput(`ids: ${wrong.slice(0, 10).join(', ')}: not valid; ${idRule}.`)
  return { ids: () => texts, empty: 0 }
}

function refuse(error: unknown): never {
  throw toNonRetryable(error)
}

/** Treats "no such document" as an answer: it shows that token and workspace are right. */
function unlessAnswered(error: unknown): void {
  const isAnswer = (error instanceof Refused || error instanceof NotFound) && error.byService
  if (!isAnswer) throw error
}
