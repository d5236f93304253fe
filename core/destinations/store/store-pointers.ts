import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { FileStore } from '../../storage/file-store.ts'
import { StoreAwayError, StoreRefusedError } from '../../storage/store-errors.ts'
import type { Publication } from '../destination.ts'
import { pointersOf, type PointerName } from '../export-folder.ts'
import { manifestName, type Manifest } from '../manifest/manifest.ts'
import { ForeignWarehouseError } from '../errors.ts'

/** `latest.json` and `latest-proven.json`: an export, and the files of its tables. Paths are relative to this file. */
const pointerSchema = z.object({
  version: z.literal(1),
  run: z.string(),
  workspace: z.string(),
  verdict: z.enum(['proven', 'unproven']),
  startedAt: z.iso.datetime({ offset: true }),
  completeThrough: z.string().nullable(),
  manifest: z.string(),
  tables: z.record(z.string(), z.array(z.string())),
})
type Pointer = z.infer<typeof pointerSchema>

export const pointerFile = (name: PointerName) => `${name}.json`

interface Place {
  store: FileStore
  /** The path of the resource. */
  path: string
  publication: Publication
}

/** More tries than there are writers: each failure means that another one succeeded. */
const mostTries = 50

/**
 * Moves the pointers of a whole list to an export, but never back to an older read: each is replaced only if it
 * is still the version that was compared.
 */
export async function moveStorePointers(
  options: Place & { folder: string; manifest: Manifest },
): Promise<void> {
  for (const name of pointersOf(options.publication))
    if (name !== 'latest-proven' || options.manifest.verdict === 'proven')
      await movePointer({ ...options, name })
}

async function movePointer(
  options: Place & { folder: string; manifest: Manifest; name: PointerName },
): Promise<void> {
  const { store, path, publication, folder, manifest, name } = options
  const file = `${path}/${pointerFile(name)}`
  const text = `${JSON.stringify(toPointer({ manifest, folder }), null, 2)}\n`
  for (let tries = 0; tries < mostTries; tries += 1) {
    const shown = await store.read(file)
    const pointer = toPointerOfOurs(store, file, shown?.text)
    refuseOtherWorkspace({ store, path, publication }, pointer)
    if (shown?.text === text) return
    if (pointer !== undefined && Date.parse(pointer.startedAt) > Date.parse(manifest.startedAt)) return
    if (await store.replace(file, text, shown?.tag)) return
    await sleep(Math.random() * 20 * 2 ** Math.min(tries, 5))
  }
  throw new StoreAwayError(`${store.locate(file)} changes too often to be moved. The call is repeated.`)
}

/**
 * A pointer that cannot be read may be that of a newer version and lead to a newer read: it is not replaced, and what it
 * leads to is not removed.
 * @throws {StoreRefusedError}
 */
function toPointerOfOurs(store: FileStore, file: string, text: string | undefined): Pointer | undefined {
  const pointer = parsePointer(text)
  if (text === undefined || pointer !== undefined) return pointer
  throw new StoreRefusedError(
    `${store.locate(file)} is not a pointer that this version of the connector can read. Remove it if nothing else needs it.`,
  )
}

function toPointer({ manifest, folder }: { manifest: Manifest; folder: string }): Pointer {
  const { run, workspace, verdict, startedAt, completeThrough, tables } = manifest
  return {
    version: 1,
    run,
    workspace,
    verdict,
    startedAt,
    completeThrough,
    manifest: `${folder}/${manifestName}`,
    tables: Object.fromEntries(
      tables.map(({ name, files }) => [name, files.map((file) => `${folder}/${file.path}`)]),
    ),
  }
}

/** Undefined for no pointer of ours. */
export function parsePointer(text: string | undefined): Pointer | undefined {
  if (text === undefined) return undefined
  try {
    return pointerSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/**
 * Rejects a store that already shows another workspace there; see `refuseForeign`.
 * @throws {ForeignWarehouseError}
 */
export async function refuseForeignStore(place: Place): Promise<void> {
  const { store, path } = place
  const file = `${path}/${pointerFile('latest')}`
  refuseOtherWorkspace(place, toPointerOfOurs(store, file, (await store.read(file))?.text))
}

function refuseOtherWorkspace({ store, path, publication }: Place, shown: Pointer | undefined): void {
  const { workspace } = publication
  if (shown === undefined || shown.workspace === workspace) return
  throw new ForeignWarehouseError(
    `${store.locate(path)} holds the exports of workspace ${shown.workspace}, not ${workspace}. Nothing was written:` +
      ' name another prefix (CONNECTOR_FILES_URL).',
  )
}

/**
 * The folders that the pointers of a resource lead to.
 * @throws {StoreRefusedError} one cannot be read
 */
export async function pointedToInStore(store: FileStore, path: string): Promise<ReadonlySet<string>> {
  const names: PointerName[] = ['latest', 'latest-proven']
  const folders = await Promise.all(
    names.map(async (name) => {
      const file = `${path}/${pointerFile(name)}`
      const pointer = toPointerOfOurs(store, file, (await store.read(file))?.text)
      return pointer === undefined ? [] : [`${path}/${dirname(pointer.manifest)}`]
    }),
  )
  return new Set(folders.flat())
}

/** The folder of an export: the given one, or the one that a pointer of this name (`.../latest`) leads to. */
export async function followPointer(store: FileStore, path: string): Promise<string> {
  const file = path.endsWith('.json') ? path : `${path}.json`
  const pointer = parsePointer((await store.read(file))?.text)
  return pointer === undefined
    ? path.replace(/\/[^/]*\.json$/, '')
    : `${dirname(file)}/${dirname(pointer.manifest)}`
}
