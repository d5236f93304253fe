import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { FileStore } from './file-store.ts'

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
