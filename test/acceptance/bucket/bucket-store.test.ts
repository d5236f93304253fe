import { randomBytes, randomUUID } from 'node:crypto'
import { appendFile, copyFile, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBucketStore } from '../../../core/storage/bucket-store.ts'
import { proveStore } from '../../../core/storage/prove-store.ts'
import { checkFiles } from '../../../scripts/checks/places.ts'
import { readPlaces } from '../../../worker/settings/settings.ts'
import { describeStoreDestination } from '../../core/destinations/store-destination.ts'
import { describeFileStore } from '../../core/storage/file-store.ts'
import { type Call, type Fault, randomFrom, startFaultProxy } from './fault-proxy.ts'
import { environmentOf, keys, startGateway } from './gateway.ts'

let gateway: Awaited<ReturnType<typeof startGateway>>
let proxy: Awaited<ReturnType<typeof startFaultProxy>>
beforeAll(async () => {
  gateway = await startGateway()
  proxy = await startFaultProxy(gateway.endpoint)
})
afterAll(async () => {
  await proxy.close()
  await gateway.close()
})

interface Opening {
  prefix?: string
  endpoint?: string
  bucket?: string
  secretAccessKey?: string
}

const openStore = (opening: Opening = {}) => {
  const { prefix = randomUUID(), endpoint = proxy.endpoint, bucket = 'exports' } = opening
  const { accessKeyId, secretAccessKey } = { ...keys, ...opening }
  const config = { endpoint, region: 'us-east-1', credentials: { accessKeyId, secretAccessKey } }
  return createBucketStore({ bucket, prefix, config })
}

describe('over a connection without faults', () => {
  beforeAll(() => proxy.setFaults(() => undefined))
  describeFileStore('a bucket', async () => {
    const prefix = randomUUID()
    return { store: openStore({ prefix }), other: openStore({ prefix }), close: async () => {} }
  })
  describeFileStore('a whole bucket', async () => {
    const store = openStore({ prefix: '' })
    for (const { path } of await store.list('')) await store.remove(path)
    return { store, other: openStore({ prefix: '' }), close: async () => {} }
  })
  describeStoreDestination('a bucket', async () => ({ store: openStore(), close: async () => {} }))
})

describe('over a connection with faults', () => {
  const random = randomFrom(17)
  const faults: Fault[] = ['unavailable', 'lost', 'away', 'cut']
  beforeAll(() =>
    proxy.setFaults(() => (random() < 0.15 ? faults[Math.floor(random() * faults.length)] : undefined)),
  )
  describeFileStore('a bucket', async () => {
    const prefix = randomUUID()
    return { store: openStore({ prefix }), other: openStore({ prefix }), close: async () => {} }
  })
})

test('an old text with the tag of a new one is not believed: it would let a pointer go back', async () => {
  proxy.setFaults(() => undefined)
  const store = openStore()
  await store.create('latest.json', 'one')
  await store.replace('latest.json', 'two', (await store.read('latest.json'))!.tag)
  let reads = 0
  proxy.setFaults(({ method }) => (method === 'GET' && (reads += 1) === 1 ? 'torn' : undefined))
  expect(await store.read('latest.json')).toMatchObject({ text: 'two' })
})

test('a text without its tag is read by one call', async () => {
  const calls: string[] = []
  const store = openStore()
  await store.create('plan.json', 'a plan')
  proxy.setFaults(({ method }) => {
    calls.push(method)
    return undefined
  })
  expect(await store.readText('plan.json')).toBe('a plan')
  expect(calls).toEqual(['GET'])
})

test('a file as large as a part of a read is kept by one call', async () => {
  const scratch = await mkdtemp(join(tmpdir(), 'part-'))
  const file = join(scratch, 'part')
  await writeFile(file, randomBytes(17 * 2 ** 20))
  const calls: string[] = []
  proxy.setFaults(({ method }) => {
    calls.push(method)
    return undefined
  })
  const store = openStore()
  await store.put('one.part', file)
  expect(calls).toEqual(['PUT'])
  expect((await buffer((await store.open('one.part'))!)).equals(await readFile(file))).toBe(true)
  await rm(scratch, { recursive: true })
})

test('each of many files is kept as it is, although answers are lost and calls are aborted', async () => {
  const random = randomFrom(20261125)
  const faults: Fault[] = ['unavailable', 'lost', 'cut']
  proxy.setFaults(() => (random() < 0.2 ? faults[Math.floor(random() * faults.length)] : undefined))
  const scratch = await mkdtemp(join(tmpdir(), 'many-'))
  const store = openStore()
  const contents = Array.from({ length: 40 }, () => randomBytes(Math.floor(random() * 2 ** 21)))
  const putEvery4th = async (first: number) => {
    for (let at = first; at < contents.length; at += 4) {
      const file = join(scratch, `${at}`)
      await writeFile(file, contents[at]!)
      const ending = new AbortController()
      const aborted = store.put(`${at}`, file, { signal: ending.signal })
      setImmediate(() => ending.abort(new Error('ended by the test')))
      await aborted.catch(() => undefined)
      await store.put(`${at}`, file)
    }
  }
  await Promise.all([0, 1, 2, 3].map(putEvery4th))
  proxy.setFaults(() => undefined)
  for (const [at, content] of contents.entries())
    expect((await buffer((await store.open(`${at}`))!)).equals(content)).toBe(true)
  await rm(scratch, { recursive: true })
})

describe('a file of several parts', () => {
  const size = 24 * 2 ** 20
  let scratch: string
  let file: string
  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'parts-'))
    file = join(scratch, 'large')
    await writeFile(file, randomBytes(size))
  })
  afterAll(() => rm(scratch, { recursive: true }))

  test.each<[string, Fault, (call: Call) => boolean]>([
    ['the reply to its beginning', 'lost', ({ query }) => query.includes('uploads')],
    ['the reply to a part', 'lost', ({ query }) => query.includes('partNumber=2')],
    [
      'its completion, for the store,',
      'gone',
      ({ method, query }) => method === 'POST' && query.includes('uploadId'),
    ],
    ['a part, by 503', 'unavailable', ({ query }) => query.includes('partNumber=1')],
    [
      'the reply to its completion',
      'lost',
      ({ method, query }) => method === 'POST' && query.includes('uploadId'),
    ],
  ])('is whole although %s was lost', async (_title, fault, isHit) => {
    let hits = 0
    proxy.setFaults((call) => (isHit(call) && (hits += 1) === 1 ? fault : undefined))
    const store = openStore()
    await store.put('large.csv', file)
    expect(hits).toBeGreaterThan(0)
    expect((await buffer((await store.open('large.csv'))!)).equals(await readFile(file))).toBe(true)
  })

  test('is not visible if it was cut short while it was read', async () => {
    const cut = join(scratch, 'cut')
    await writeFile(cut, randomBytes(2 * size))
    let cutting: Promise<void> | undefined
    proxy.setFaults(({ query }) => {
      if (query.includes('uploads')) cutting = truncate(cut, size)
      return undefined
    })
    const store = openStore()
    await expect(store.put('cut.csv', cut)).rejects.toThrow('is repeated')
    await cutting
    expect(await store.list('')).toEqual([])
  })

  test('is kept as it was at first if it grows while it is read', async () => {
    const log = join(scratch, 'log')
    await copyFile(file, log)
    let growing: Promise<void> | undefined
    proxy.setFaults(({ query }) => {
      if (query.includes('uploads')) growing = appendFile(log, 'more')
      return undefined
    })
    const store = openStore()
    await store.put('log', log)
    await growing
    expect((await buffer((await store.open('log'))!)).equals(await readFile(file))).toBe(true)
  })

  test('is given up when its signal is aborted, and is not visible', async () => {
    const ending = new AbortController()
    proxy.setFaults(({ query }) => {
      if (query.includes('partNumber=2')) ending.abort(new Error('ended by the test'))
      return undefined
    })
    const store = openStore()
    await expect(store.put('large.csv', file, { signal: ending.signal })).rejects.toThrow('ended by the test')
    expect(await store.list('')).toEqual([])
  })
})

describe('a store that cannot be used is refused in one sentence', () => {
  beforeAll(() => proxy.setFaults(() => undefined))
  test.each<[string, Opening, string, RegExp]>([
    [
      'a bucket that does not exist',
      { bucket: 'exprots' },
      'StoreRefusedError',
      /^There is no bucket exprots at 127\.0\.0\.1:\d+\. Create it, or correct CONNECTOR_FILES_URL\.$/,
    ],
    [
      'a wrong secret',
      { secretAccessKey: 'guessed' },
      'StoreRefusedError',
      /^The object store at \S+ rejects the credentials \(SignatureDoesNotMatch\)\. Check AWS_ACCESS_KEY_ID/,
    ],
    [
      'an address where nobody listens',
      { endpoint: 'http://127.0.0.1:9' },
      'StoreAwayError',
      /^s3:\/\/exports\/\S+ cannot be reached at 127\.0\.0\.1:9 \(ECONNREFUSED\)\./,
    ],
  ])('%s', async (_title, opening, name, message) => {
    const error: unknown = await proveStore(openStore(opening)).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ name, message: expect.stringMatching(message) })
    expect(JSON.stringify(error) + String(error)).not.toContain(
      opening.secretAccessKey ?? keys.secretAccessKey,
    )
  })

  test('credentials without the right to write', async () => {
    const readonly = await startGateway({ readonly: true })
    try {
      await expect(proveStore(openStore({ endpoint: readonly.endpoint }))).rejects.toMatchObject({
        name: 'StoreRefusedError',
        message: expect.stringMatching(
          /^The credentials do not permit this in s3:\S+ \(AccessDenied\)\. Grant s3:GetObject,/,
        ),
      })
    } finally {
      await readonly.close()
    }
  })

  test('but not one of which the credentials permit all but removing', async () => {
    proxy.setFaults(({ method }) => (method === 'DELETE' ? 'denied' : undefined))
    expect(await proveStore(openStore())).toEqual({ mayRemove: false })
    const env = { ...environmentOf(proxy.endpoint), CONNECTOR_FILES_URL: 's3://exports/checked' }
    const found = await checkFiles(readPlaces({ env, cwd: '/nowhere' }))
    expect(found).toMatchObject([{ status: 'ok', message: expect.stringContaining('Grant s3:DeleteObject') }])
  })

  test('a store without conditional writes', async () => {
    proxy.setFaults(() => 'unconditional')
    await expect(proveStore(openStore())).rejects.toMatchObject({
      name: 'ConditionIgnoredError',
      message: expect.stringContaining('ignores If-None-Match'),
    })
    let puts = 0
    proxy.setFaults(({ method }) => (method === 'PUT' && (puts += 1) > 2 ? 'unconditional' : undefined))
    await expect(proveStore(openStore())).rejects.toMatchObject({
      name: 'ConditionIgnoredError',
      message: expect.stringContaining('ignores If-Match'),
    })
  })
})
