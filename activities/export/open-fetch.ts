import { z } from 'zod'
import { cancellationSignal } from '@temporalio/activity'
import { NotFound, Refused } from '../../core/billing/errors.ts'
import { documentResources } from '../../core/billing/resources/documents.ts'
import { idRule, isId, openIdColumn } from '../../core/imports/read-ids.ts'
import { checkPrivacy } from '../../core/tables/privacy.ts'
import { keepAskedIds, readAskedIds } from '../../core/exports/requested-ids.ts'
import { claimExports } from '../leases.ts'
import type { ActivityDeps } from '../deps.ts'
import { InvalidInput } from '../../core/runs/errors.ts'
import type { AskedIds, ExportPlan } from '../../core/exports/plan.ts'
import { refusing } from '../../core/imports/refusals.ts'
import { insideFolder } from '../../core/runs/inside-folder.ts'
import { fetchInput, parseInput } from '../../core/exports/input.ts'
import { type Opened, toOpened } from '../opened.ts'
import { startPlan } from './start-plan.ts'
import { savePlan } from '../../core/exports/saved-plan.ts'

/**
 * Checks everything about a fetch that can be known before it begins (input, every id, identity, the service's
 * answer for the first of them), keeps the ids, and claims the documents and destinations for this run.
 */
export function createOpenFetch(deps: ActivityDeps) {
  return async function openFetch(input: unknown): Promise<Opened<ExportPlan>> {
    const asked = parseInput({ schema: fetchInput, input, what: 'a fetch' })
    const { documents, exclude = [], hash = [] } = asked
    const resource = documentResources[documents]
    checkPrivacy([resource], { exclude, hash, hashKey: deps.hashKey })
    const source = await openIds({ dataDir: deps.dataDir, asked })
    const plan = await startPlan({ deps, asked, resources: [documents] })
    plan.ids = await keepIds({ deps, plan, source })
    await claimExports({ deps, plan })
    for await (const id of readAskedIds({ dataDir: deps.dataDir, run: plan.run, skip: 0 })) {
      // Temporal tries again, and shows meanwhile why: the client's own patience would hide it for minutes.
      await resource.get(deps.billing, id, { tries: 1, signal: cancellationSignal() }).catch(unlessAnswered)
      break
    }
    await savePlan({ dataDir: deps.dataDir, plan })
    return await toOpened(deps, plan)
  }
}

interface Ids {
  ids(): AsyncIterable<string> | Iterable<string>
  /** Rows of a file without an id. */
  empty: number
}

async function openIds(of: { dataDir: string; asked: z.output<typeof fetchInput> }): Promise<Ids> {
  const { dataDir, asked } = of
  const { ids, file, column } = asked
  if ((ids === undefined) === (file === undefined))
    throw new InvalidInput('A fetch takes either ids or a file: {"ids": ["501"]} or {"file": "ids.csv"}.')
  if (file !== undefined) {
    const path = await insideFolder({ dataDir, path: file, command: 'fetch' })
    return await openIdColumn({ path, column }).catch(refuse)
  }
  if (column !== undefined) throw new InvalidInput('column: only a file has columns.')
  const texts = (ids ?? []).map((one) => String(one).trim())
  if (texts.length === 0) throw new InvalidInput('ids: it is empty. Name at least one id.')
  const wrong = texts.filter((text) => !isId(text)).map((text) => JSON.stringify(text))
  if (wrong.length > 0)
    throw new InvalidInput(`ids: ${wrong.slice(0, 10).join(', ')} can be no id; ${idRule}.`)
  return { ids: () => texts, empty: 0 }
}

async function keepIds(of: { deps: ActivityDeps; plan: ExportPlan; source: Ids }): Promise<AskedIds> {
  const { deps, plan, source } = of
  const ids = source.ids()
  const kept = await keepAskedIds({ dataDir: deps.dataDir, run: plan.run, ids }).catch(refuse)
  const { repeated, ...asked } = kept
  const notes = [
    ...(repeated > 0
      ? [`${repeated === 1 ? '1 id was' : `${repeated} ids were`} given again; each is asked for once.`]
      : []),
    ...(source.empty > 0
      ? [
          source.empty === 1
            ? '1 row has no id and was passed over.'
            : `${source.empty} rows have no id and were passed over.`,
        ]
      : []),
  ]
  return { ...asked, notes }
}

function refuse(error: unknown): never {
  throw refusing(error)
}

/** That there is no such document is an answer, and shows that token and workspace are right. */
function unlessAnswered(error: unknown): void {
  const isAnswer = (error instanceof Refused || error instanceof NotFound) && error.byService
  if (!isAnswer) throw error
}
