import { dirname, posix } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { type FileStore, StoreAwayError, StoreRefusedError } from '../../storage/file-store.ts'
import type { Publication } from '../destination.ts'
import { NotAdmittedError } from '../errors.ts'
import { MalformedManifestError, manifestName, type Manifest, readStoredManifest } from '../manifest.ts'

/**
 * Beside the exports of a resource: `latest` leads to the newest whole list, `latest-proven` to the newest proven one. In a
 * folder they are links; elsewhere files of JSON, `latest.json`.
 */
export type PointerName = 'latest' | 'latest-proven'

const pointerNames: readonly PointerName[] = ['latest', 'latest-proven']

/** `latest.json`: an export, and the files of its tables. Paths are relative to this file. */
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

/** The folder that holds the exports of a resource. */
interface List {
  store: FileStore
  path: string
}

/** The target of a pointer; `version` identifies what was read, and is undefined if there is no pointer. */
interface Shown {
  version: string | undefined
  to: { folder: string; workspace: string; startedAt: string } | undefined
}

/** More tries than there are writers: each failure means that another one succeeded. */
const mostTries = 50

/**
 * Moves the pointers of a whole list to an export, but never back to an older read: each is replaced only if it is still the
 * version that was compared.
 */
export async function movePointers(
  options: List & { publication: Publication; folder: string; manifest: Manifest },
): Promise<void> {
  for (const name of pointerNames) if (movesPointer(name, options)) await movePointer({ ...options, name })
}

/** Programs follow the pointers, so a sheet made for Excel must not change the delimiter under them. */
function movesPointer(
  name: PointerName,
  { publication, manifest }: { publication: Publication; manifest: Manifest },
): boolean {
  const { mode, capped, forExcel, filters } = publication
  const isWholeList = mode === 'full' && !capped && !forExcel && Object.keys(filters).length === 0
  return isWholeList && (name === 'latest' || manifest.verdict === 'proven')
}

async function movePointer(
  options: List & { folder: string; manifest: Manifest; name: PointerName },
): Promise<void> {
  const { store, path, folder, manifest, name } = options
  for (let tries = 0; tries < mostTries; tries += 1) {
    const { version, to } = await readPointer(options, name)
    refuseOtherWorkspace(options, to, manifest.workspace)
    if (to !== undefined && Date.parse(to.startedAt) > Date.parse(manifest.startedAt)) return
    if (await writePointer(options, { name, folder, manifest, version })) return
    await sleep(Math.random() * 20 * 2 ** Math.min(tries, 5))
  }
  throw new StoreAwayError(
    `${store.locate(pointerPath({ store, path }, name))} changes too often to be moved. The call is repeated.`,
  )
}

const pointerPath = ({ store, path }: List, name: PointerName) =>
  `${path}/${name}${store.folder === undefined ? '.json' : ''}`

async function readPointer(list: List, name: PointerName): Promise<Shown> {
  const { store, path } = list
  const place = pointerPath(list, name)
  if (store.folder !== undefined) {
    const version = await store.folder.readLink(place)
    if (version === undefined) return { version, to: undefined }
    // A link to anything else than an export is replaced; an export that the disk does not give may be a newer one.
    const to = await readStoredManifest(store, posix.join(path, version)).catch((error: unknown) => {
      if (error instanceof MalformedManifestError) return undefined
      throw error
    })
    return { version, to: to && { ...to, folder: version } }
  }
  const found = await store.read(place)
  const pointer = parsePointer(found?.text)
  // It may be that of a newer version, and lead to a newer read: it is not replaced, and what it leads to is not removed.
  if (found !== undefined && pointer === undefined)
    throw new StoreRefusedError(
      `${store.locate(place)} is not a pointer that this version of the connector can read. Remove it if nothing else needs it.`,
    )
  return { version: found?.tag, to: pointer && { ...pointer, folder: dirname(pointer.manifest) } }
}

/** False if the pointer has another version by now. */
async function writePointer(
  list: List,
  to: { name: PointerName; folder: string; manifest: Manifest; version: string | undefined },
): Promise<boolean> {
  const { store } = list
  const { folder, manifest, version } = to
  const place = pointerPath(list, to.name)
  if (store.folder !== undefined) return await store.folder.replaceLink(place, folder, version)
  const { run, workspace, verdict, startedAt, completeThrough, tables } = manifest
  const pointer: Pointer = {
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
  return await store.replace(place, `${JSON.stringify(pointer, null, 2)}\n`, version)
}

/** Undefined if the text is not a pointer of ours. */
export function parsePointer(text: string | undefined): Pointer | undefined {
  if (text === undefined) return undefined
  try {
    return pointerSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/**
 * Rejects a list that already shows another workspace. Two workspaces may be allowed the same root, and `latest` must not
 * alternate between their records.
 * @throws {NotAdmittedError}
 */
export async function refuseForeign({ store, path }: List, { workspace }: Publication): Promise<void> {
  refuseOtherWorkspace({ store, path }, (await readPointer({ store, path }, 'latest')).to, workspace)
}

function refuseOtherWorkspace({ store, path }: List, shown: Shown['to'], workspace: string): void {
  if (shown === undefined || shown.workspace === workspace) return
  const other = store.folder === undefined ? 'prefix (CONNECTOR_FILES_URL)' : 'folder (--input out=...)'
  throw new NotAdmittedError(
    `${store.locate(path)} holds the exports of workspace ${shown.workspace}, not ${workspace}. They are not replaced:` +
      ` name another ${other}.`,
  )
}

/**
 * The paths of the exports that the pointers of a list lead to, and links that people made.
 * @throws {StoreRefusedError} one cannot be read
 */
export async function pointedTo(store: FileStore, path: string): Promise<ReadonlySet<string>> {
  if (store.folder !== undefined) return new Set(await store.folder.linkedFrom(path))
  const shown = await Promise.all(pointerNames.map((name) => readPointer({ store, path }, name)))
  return new Set(shown.flatMap(({ to }) => (to === undefined ? [] : [posix.join(path, to.folder)])))
}

/** The path of an export in a store: the given one, or the one that a pointer of this name (`.../latest`) leads to. */
export async function followPointer(store: FileStore, path: string): Promise<string> {
  const file = path.endsWith('.json') ? path : `${path}.json`
  const pointer = parsePointer((await store.read(file))?.text)
  return pointer === undefined
    ? path.replace(/\/[^/]*\.json$/, '')
    : `${dirname(file)}/${dirname(pointer.manifest)}`
}
