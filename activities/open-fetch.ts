import { cancellationSignal } from '@temporalio/activity'
import { z } from 'zod'
import { NotFound, Refused } from '../billing/errors.ts'
import { documentNames, documentResources } from '../billing/resources/documents.ts'
import { idRule, isId, openIdColumn } from '../imports/read-ids.ts'
import { checkPrivacy } from '../tables/privacy.ts'
import { keepAskedIds, readAskedIds } from './asked-ids.ts'
import { claimExports } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import { InvalidInput } from './errors.ts'
import type { AskedIds, ExportPlan } from './export-plan.ts'
import { refusing } from './import-errors.ts'
import { insideFolder } from './inside-folder.ts'
import { parseInput, publishingFields, startPlan } from './publishing-input.ts'
import { savePlan } from './saved-plan.ts'

/** The input of `fetchDocuments`: one object, as the Temporal UI sends it. */
const fetchInput = z.strictObject({
  documents: z.enum(documentNames),
  /** The ids, or `file`. */
  ids: z.array(z.union([z.string(), z.int()])).optional(),
  /** A CSV file in the data folder. */
  file: z.string().min(1).optional(),
  /** The column of the file that holds the ids; `id` where it is left out. */
  column: z.string().min(1).optional(),
  ...publishingFields,
})
export type FetchInput = z.input<typeof fetchInput>

/**
 * Checks everything about a fetch that can be known before it begins (input, every id, identity, the service's
 * answer for the first of them), keeps the ids, and claims the documents and destinations for this run.
 */
export function createOpenFetch(deps: ActivityDeps) {
  return async function openFetch(input: unknown): Promise<ExportPlan> {
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
    return plan
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
