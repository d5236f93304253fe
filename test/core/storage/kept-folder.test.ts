import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createStepFolder } from '../../../core/runs/step-folder.ts'
import { type FileStore, StoreAwayError } from '../../../core/storage/file-store.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { checkOut, keptFolders, SupersededFolderError } from '../../../core/storage/kept-folder.ts'

const path = 'imports/run'
const concurrent = new Set(['log'])

const newFolder = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kept-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const newStore = async () => createFolderStore(await newFolder())

/** A step with an empty folder of its own. */
async function startStep(store: FileStore, only?: (name: string) => boolean) {
  const to = join(await newFolder(), 'run')
  const folder = await checkOut({ store, path, to, only, concurrent })
  await mkdir(to, { recursive: true })
  return {
    exists: folder.exists,
    keep: () => folder.keep(),
    prune: () => folder.prune(),
    read: (name: string) => readFile(join(to, name), 'utf8').catch(() => undefined),
    append: (name: string, text: string) => appendFile(join(to, name), text),
    remove: (name: string) => rm(join(to, name)),
    async write(name: string, text: string) {
      await mkdir(dirname(join(to, name)), { recursive: true })
      await writeFile(join(to, name), text)
    },
  }
}

test('a step has the files as the step before kept them: new, changed and removed ones, in folders, too', async () => {
  const store = await newStore()
  const first = await startStep(store)
  expect(first.exists).toBe(false)
  await first.write('plan.json', 'plan')
  await first.write('input/file/rows.csv', 'rows')
  await first.write('audit.json', 'proven')
  await first.write('.report-1/results.csv', 'temporary')
  await first.keep()
  const second = await startStep(store)
  expect(second.exists).toBe(true)
  expect(await second.read('input/file/rows.csv')).toBe('rows')
  expect(await second.read('.report-1/results.csv')).toBeUndefined()
  await second.write('plan.json', 'another')
  await second.remove('audit.json')
  await second.keep()
  const third = await startStep(store)
  expect(await third.read('plan.json')).toBe('another')
  expect(await third.read('audit.json')).toBeUndefined()
  expect(await keptFolders(store, 'imports')).toEqual(['run'])
  // An index, and each file once.
  expect(await store.list(path)).toHaveLength(3)
})

test('nothing of a step that was given up appears after another one has changed the folder, not even what that one removed', async () => {
  const store = await newStore()
  const first = await startStep(store)
  await first.write('plan.json', 'plan')
  await first.keep()
  const late = await startStep(store)
  await late.write('audit.json', 'proven')
  const next = await startStep(store)
  await next.write('audit.json', 'a row is missing')
  await next.keep()
  await next.remove('audit.json')
  await next.keep()
  await expect(late.keep()).rejects.toThrow(SupersededFolderError)
  expect(await (await startStep(store)).read('audit.json')).toBeUndefined()
  expect(await store.list(path)).toHaveLength(2)
})

test('of two steps that begin a folder at once, one is told to begin again', async () => {
  const store = await newStore()
  const [one, other] = [await startStep(store), await startStep(store)]
  await one.write('plan.json', 'one')
  await other.write('plan.json', 'other')
  await one.keep()
  await expect(other.keep()).rejects.toThrow(SupersededFolderError)
  expect(await (await startStep(store)).read('plan.json')).toBe('one')
})

test('a log that a step writes beside another one supersedes neither, and two writers of one log are told so', async () => {
  const store = await newStore()
  const first = await startStep(store)
  await first.write('plan.json', 'plan')
  await first.write('log', 'a\n')
  await first.keep()
  const [step, operator, other] = [await startStep(store), await startStep(store), await startStep(store)]
  await operator.append('log', 'b\n')
  await operator.keep()
  await step.write('report.json', 'report')
  await step.keep()
  await other.append('log', 'c\n')
  await expect(other.keep()).rejects.toThrow(SupersededFolderError)
  const after = await startStep(store)
  expect([await after.read('log'), await after.read('report.json')]).toEqual(['a\nb\n', 'report'])
})

test('a step that fetched only some files leaves the others as they are', async () => {
  const store = await newStore()
  const first = await startStep(store)
  for (const name of ['plan.json', 'large.jsonl']) await first.write(name, name)
  await first.keep()
  const second = await startStep(store, (name) => name === 'plan.json')
  expect(await second.read('large.jsonl')).toBeUndefined()
  await second.write('plan.json', 'new')
  await second.keep()
  const third = await startStep(store)
  expect([await third.read('plan.json'), await third.read('large.jsonl')]).toEqual(['new', 'large.jsonl'])
})

test('a file that does not arrive as it was kept is no file: the step fails and is tried again', async () => {
  const store = await newStore()
  const first = await startStep(store)
  await first.write('rows.jsonl', '1\n2\n3\n')
  await first.keep()
  const object = (await store.list(path)).find((file) => file.path.endsWith('rows.jsonl'))!
  await writeFile(store.locate(object.path), '1\n2\n')
  await expect(startStep(store)).rejects.toMatchObject({ name: 'StoreAwayError' })
})

test('a step whose index was written, but not confirmed, is content with it', async () => {
  const store = await newStore()
  const first = await startStep({
    ...store,
    async replace(file, text, tag) {
      await store.replace(file, text, tag)
      const beside = JSON.parse(text) as { version: number; files: object }
      const { files } = beside
      // Before the answer is sought, somebody adds to a log.
      const log = { object: 'imports/run/kept/log', sha256: '', bytes: 0 }
      const other = JSON.stringify({ ...beside, files: { ...files, log } })
      await store.replace(file, other, (await store.read(file))?.tag)
      return false
    },
  })
  await first.write('plan.json', 'plan')
  await first.keep()
  const second = await startStep(store, (name) => name === 'plan.json')
  expect(await second.read('plan.json')).toBe('plan')
})

test('a worker whose disk is cleaned up under a step removes nothing from the store, and the step is tried again', async () => {
  const store = await newStore()
  const run = { room: 'imports', run: 'run' } as const
  const first = createStepFolder({ dataDir: await newFolder(), store })
  await first.fetchRun(run)
  await mkdir(join(first.dataDir, path))
  for (const name of ['plan.json', 'check.json']) await writeFile(join(first.dataDir, path, name), name)
  await first.keep()
  const dataDir = await newFolder()
  const second = createStepFolder({ dataDir, store })
  await second.fetchRun(run)
  await rm(join(dataDir, 'steps'), { recursive: true })
  await expect(second.keep()).rejects.toMatchObject({ name: 'FolderGoneError', retryable: true })
  // The step continues, and writes into a new folder.
  await mkdir(join(second.dataDir, path), { recursive: true })
  await writeFile(join(second.dataDir, path, 'check.json'), 'another')
  await expect(second.keep()).rejects.toMatchObject({ name: 'FolderGoneError' })
  const third = await startStep(store)
  expect([await third.read('plan.json'), await third.read('check.json')]).toEqual(['plan.json', 'check.json'])
})

test('a log is kept on after the store took a version of it and went away before it said so', async () => {
  const store = await newStore()
  const first = await startStep(store)
  await first.write('log', 'a\n')
  await first.keep()
  let isAway = true
  const sender = await startStep({
    ...store,
    async replace(...args) {
      const isReplaced = await store.replace(...args)
      if (isAway) throw new StoreAwayError('503')
      return isReplaced
    },
  })
  await sender.append('log', 'b\n')
  await expect(sender.keep()).rejects.toThrow(StoreAwayError)
  isAway = false
  await sender.append('log', 'c\n')
  await sender.keep()
  expect(await (await startStep(store)).read('log')).toBe('a\nb\nc\n')
})

test('what a killed step has put is removed, and a step that has put something before and wakes after that begins again', async () => {
  const store = await newStore()
  const first = await startStep(store)
  await first.write('plan.json', 'plan')
  await first.write('log', 'a\n')
  await first.keep()
  await store.create(`${path}/kept/killed/audit.json`, 'proven')
  const woken = Promise.withResolvers<void>()
  const isPut = Promise.withResolvers<void>()
  const frozen = await startStep({
    ...store,
    async replace(...args) {
      isPut.resolve()
      await woken.promise
      return store.replace(...args)
    },
  })
  await frozen.append('log', 'b\n')
  const kept = frozen.keep()
  await isPut.promise
  const last = await startStep(store)
  await last.prune()
  // The index, the plan and the log.
  expect(await store.list(path)).toHaveLength(3)
  woken.resolve()
  await expect(kept).rejects.toThrow(SupersededFolderError)
  await last.write('report.json', 'report')
  await last.keep()
  const after = await startStep(store)
  expect([await after.read('plan.json'), await after.read('log'), await after.read('report.json')]).toEqual([
    'plan',
    'a\n',
    'report',
  ])
})

test('a step that ends a run without leftovers leaves the index as it is', async () => {
  const store = await newStore()
  const first = await startStep(store)
  await first.write('plan.json', 'plan')
  await first.keep()
  const before = await store.read(`${path}/folder.json`)
  await first.prune()
  expect(await store.read(`${path}/folder.json`)).toEqual(before)
})

test('a step keeps what a worker of a later version has added to the index', async () => {
  const store = await newStore()
  const first = await startStep(store)
  await first.write('plan.json', 'plan')
  await first.keep()
  const index = `${path}/folder.json`
  const { text, tag } = (await store.read(index))!
  await store.replace(index, JSON.stringify({ ...(JSON.parse(text) as object), later: 7 }), tag)
  const second = await startStep(store)
  await second.write('audit.json', 'proven')
  await second.keep()
  expect(JSON.parse((await store.read(index))!.text)).toMatchObject({ later: 7, version: 2 })
})
