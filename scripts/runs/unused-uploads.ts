import { Client, type WorkflowClient } from '@temporalio/client'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { findOldUploads, type Upload } from '../../core/imports/old-uploads.ts'
import { uploadPrefix } from '../../core/imports/plan.ts'
import { createFolderStore } from '../../core/storage/folder-store.ts'
import { blankingCodec, createPayloadCodec, PayloadKeyError } from '../../worker/codec/payload-codec.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { processSettings } from '../session/settings.ts'
import { connect, temporalPlace } from '../session/temporal-place.ts'
import { type RunPlaces, sharedFiles } from './fetch-run.ts'

export interface UnusedUpload extends Upload {
  /** Its folder, or its address in the bucket. */
  where: string
  remove(): Promise<void>
}

/**
 * Finds the input files that commands handed over before `before` (ms since 1970) and that no run needs: an import that
 * was refused or terminated never takes them over. Temporal is asked only if there are any.
 *
 * @param onUnknown called instead, with the number of uploads, if Temporal does not say which of them its runs name
 */
export async function findUnusedUploads(options: {
  places: RunPlaces
  before: number
  onUnknown: (count: number, error: unknown) => void
}): Promise<UnusedUpload[]> {
  const { places, onUnknown } = options
  const { dataDir } = places
  const uploads: UnusedUpload[] = []
  const folder = createFolderStore(dataDir)
  for (const store of [folder, sharedFiles(places) ?? []].flat())
    for (const upload of await findOldUploads(store, options))
      uploads.push({
        ...upload,
        where: store.locate(upload.path),
        async remove() {
          for (const { path } of upload.files) await store.remove(path)
          if (store === folder) await rm(join(dataDir, upload.path), { recursive: true, force: true })
        },
      })
  if (uploads.length === 0) return []
  try {
    const named = await namedUploads(processSettings())
    return uploads.filter(({ path }) => !named.has(path.slice(path.indexOf(uploadPrefix))))
  } catch (error) {
    onUnknown(uploads.length, error)
    return []
  }
}

/**
 * The uploads in the input of any import that Temporal still has, ended or not: a Reset, or a worker that comes late, may
 * begin it once more.
 *
 * @throws {RefusedError} no server answers
 * @throws {PayloadKeyError} an input cannot be read
 */
async function namedUploads(settings: Settings): Promise<ReadonlySet<string>> {
  const named = new Set<string>()
  const { connection, options } = await connect(temporalPlace(settings))
  try {
    const { namespace } = options
    const dataConverter = { payloadCodecs: [blankingCodec] }
    const { workflow } = new Client({ connection, namespace, dataConverter })
    // Those of every task queue: live and test mode may share a data folder.
    for await (const run of workflow.list({ query: "WorkflowType = 'importFile'" })) {
      const input = await inputOf({ workflow, namespace, run, settings }).catch((error: unknown) => {
        // Another connector has keys of its own.
        if (error instanceof PayloadKeyError && run.taskQueue !== settings.taskQueue) return ''
        throw error
      })
      for (const [name] of input.matchAll(/\.upload-[\w-]+/g)) named.add(name)
    }
    return named
  } finally {
    await connection.close()
  }
}

/** The input of a run, as text. */
async function inputOf(options: {
  workflow: WorkflowClient
  namespace: string
  run: { workflowId: string; runId: string }
  settings: Settings
}): Promise<string> {
  const { workflow, namespace, run, settings } = options
  const { workflowId, runId } = run
  const { history } = await workflow.workflowService.getWorkflowExecutionHistory({
    namespace,
    execution: { workflowId, runId },
    maximumPageSize: 1,
  })
  const payloads = history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? []
  const context = { type: 'workflow', namespace, workflowId } as const
  const decoded = await createPayloadCodec(settings.payloadKeys).decode(payloads, context)
  return decoded.map(({ data }) => Buffer.from(data ?? []).toString()).join('\n')
}
