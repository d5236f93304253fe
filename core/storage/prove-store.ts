import { randomUUID } from 'node:crypto'
import { type FileStore, removeIfPermitted } from './file-store.ts'
import { ConditionIgnoredError, StoreRefusedError } from './store-errors.ts'

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
