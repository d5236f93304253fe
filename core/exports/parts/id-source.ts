import { documentResources, type DocumentName } from '../../billing/resources/lists.ts'
import type { IdState } from '../../reading/read-by-id.ts'
import { readById } from '../../reading/read-by-id.ts'
import { readAskedIds } from '../requested-ids.ts'
import type { AskedIds } from '../plan.ts'
import type { Source, SourceSetup } from './source.ts'

/** Reads the documents of a fetch by id, starting from its checkpoint. */
export async function* readFromIds(setup: SourceSetup & { resource: DocumentName; ids: AskedIds }): Source {
  const { deps, plan, resource, ids, from, billing, cancelled } = setup
  const documents = documentResources[resource]
  const state = from?.read as IdState | undefined
  const read = readById({
    resource,
    ids: readAskedIds({ ...deps, run: plan.run, asked: ids, skip: state?.processed ?? 0 }),
    asked: ids.asked,
    fetchDocument: ({ id, signal }) =>
      documents.get(billing, id, { signal: AbortSignal.any([signal, cancelled]) }),
    testMode: plan.identity.mode === 'test',
    concurrency: deps.concurrency,
    now: () => deps.state.now(),
    notes: ids.notes,
    ...(state !== undefined && { state }),
  })
  try {
    for (;;) {
      const next = await read.next()
      if (next.done === true) return next.value
      const { result, ...step } = next.value
      yield {
        ...step,
        records: result.kind === 'record' ? [result.record] : [],
        rejected: [],
        missing: result.kind === 'missing' ? [result.id] : [],
        open: result.kind === 'open' ? [result] : [],
      }
    }
  } finally {
    await read.return(undefined as never)
  }
}
