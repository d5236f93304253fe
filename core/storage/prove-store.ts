import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { ConditionIgnoredError, type FileStore, removeIfPermitted, StoreRefusedError } from './file-store.ts'

/**
 * Proves what publishing and the steps of a run rely on: what was written is read and listed, an existing text is not
 * created a second time, and an old tag replaces nothing. Uses one small file, and removes it where the credentials permit
 * that; no run relies on it.
 *
 * @throws {ConditionIgnoredError}
 * @throws {StoreRefusedError | StoreAwayError}
 */
export async function proveStore(store: FileStore): Promise<{ mayRemove: boolean }> {
  const folder = 'checks'
  const path = `${folder}/${randomUUID()}.json`
  const where = store.locate('')
  const expectText = async (expected: string) => {
    const found = await store.read(path)
    if (found?.text === expected) return found.tag
    throw new StoreRefusedError(`${where} does not return what was just written there.`)
  }
  try {
    await store.create(path, '1')
    const first = await expectText('1')
    if (await store.create(path, '2')) throw new ConditionIgnoredError({ where, condition: 'If-None-Match' })
    await store.replace(path, '3', first)
    await expectText('3')
    if (await store.replace(path, '4', first))
      throw new ConditionIgnoredError({ where, condition: 'If-Match' })
    await expectText('3')
    const listed = await store.list(folder)
    if (!listed.some((file) => file.path === path))
      throw new StoreRefusedError(`${where} does not list what was just written there.`)
  } catch (error) {
    await store.remove(path).catch(() => undefined)
    throw error
  }
  return { mayRemove: await removeIfPermitted(store, path) }
}

const proofs = new WeakMap<FileStore, Promise<unknown>>()

/** Proves a store before this process relies on it for the first time. */
export async function proveOnce(store: FileStore): Promise<void> {
  const proof = proofs.get(store) ?? proveStore(store)
  proofs.set(store, proof)
  try {
    await proof
  } catch (error) {
    proofs.delete(store)
    throw error
  }
}

/** The files in this store belong to another state, so its runs could overwrite the files of others. */
class OtherStateError extends Error {
  override readonly name = 'OtherStateError'
  readonly retryable = false
  constructor({ store, owner, place }: { store: string; owner: string; place: string }) {
    super(
      `${store} keeps the files of the workers whose state is in ${owner}, not in ${place}. Name another prefix ` +
        '(CONNECTOR_FILES_URL), or that state (CONNECTOR_STATE_URL, BILLING_WORKSPACE, BILLING_TEST_MODE).',
    )
  }
}

const ownerFile = 'fleet.json'

const ownerSchema = z.object({
  /** Random: what the state knows this store by. */
  id: z.string(),
  /** The id of the state, and its place for people. */
  state: z.string(),
  place: z.string(),
})

/**
 * Binds a store to the state of its workers, if it belongs to none, and returns its own id.
 *
 * @param options.state the id of the state
 * @param options.place the place of the state, for people
 * @throws {OtherStateError}
 * @throws {StoreAwayError | StoreRefusedError}
 */
export async function bindStore(options: {
  store: FileStore
  state: string
  place: string
}): Promise<string> {
  const { store, state, place } = options
  const text = JSON.stringify({ id: randomUUID(), state, place })
  await store.create(ownerFile, text)
  const owner = (await findOwner(store)) ?? parseOwner(text)
  if (owner.state !== state) throw new OtherStateError({ store: store.locate(''), owner: owner.place, place })
  return owner.id
}

/** The state that a store belongs to; undefined if it belongs to none. */
export async function findOwner(store: FileStore): Promise<z.infer<typeof ownerSchema> | undefined> {
  const text = (await store.read(ownerFile))?.text
  return text === undefined ? undefined : parseOwner(text)
}

const parseOwner = (text: string) => ownerSchema.parse(JSON.parse(text))
