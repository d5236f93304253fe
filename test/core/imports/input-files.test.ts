import { mkdir, readFile, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { filesOf, prepareInput, refuseDamaged } from '../../../core/imports/stored-input.ts'
import { parseMapping, readMapping } from '../../../core/imports/mapping/mapping.ts'
import { readLookup } from '../../../core/imports/mapping/lookup.ts'
import { temporaryFolder } from './csv-file.ts'

let world: string

beforeEach(async () => {
  world = await temporaryFolder()
  await writeFile(join(world, 'rows.csv'), 'supplier\na\n')
  await writeFile(join(world, 'suppliers.csv'), 'a,sup_1\n')
})

const dataDir = () => join(world, 'data')
const prepare = (mapping: object, file = 'rows.csv') =>
  prepareInput({ files: { file: join(world, file), mapping }, dataDir: dataDir() })

async function store(mapping: object, file?: string) {
  await using prepared = await prepare(mapping, file)
  return { hash: prepared.hash, ...(await prepared.keep()) }
}

const inputs = () => readdir(join(dataDir(), 'imports/input'))

test.each(['../../..', '/etc/x', '..', 'a/b', 'a\0b', '', 'x'.repeat(3_000)])(
  'a lookup for the field %j is refused before anything is copied',
  (field) => {
    expect(() => parseMapping({ lookups: { [field]: 'suppliers.csv' } })).toThrow(/not the name of a field/)
  },
)

test.each(['supplier', ' Supplier ', 'lines.2.name', 'line.amount', 'next_billing'])(
  'a lookup for the field %j is taken',
  (field) => {
    const lookups = { [field]: 'suppliers.csv' }
    expect(parseMapping({ lookups }).lookups).toEqual(lookups)
  },
)

test('a mapping that cannot be used is refused in plain words', () => {
  expect(() => parseMapping({ column: {}, set: { document: 7 }, lookups: [] })).toThrow(
    'set.document: takes a text, not a number; lookups: takes an object with fields, not a list; it: has no field "column".',
  )
})

test('the name of a field decides nothing about where its lookup is copied to', async () => {
  const lookups = { '../../..': join(world, 'suppliers.csv'), supplier: join(world, 'suppliers.csv') }
  const { hash, ...stored } = await store({ lookups })
  expect(await filesOf({ dataDir: dataDir(), ...stored })).toEqual(
    ['file/rows.csv', 'mapping.json', 'lookups/1/suppliers.csv', 'lookups/2/suppliers.csv'].map(
      (name) => `imports/input/${hash}/${name}`,
    ),
  )
  const names = await readdir(world, { recursive: true, withFileTypes: true })
  const outside = names.filter((entry) => entry.isFile() && !entry.parentPath.includes('/imports/input'))
  expect(outside.map(({ name }) => name).toSorted()).toEqual(['rows.csv', 'suppliers.csv'])
})

test.each(['mapping.json', 'lookups', 'file'])(
  'a file called %s is copied like any other, and overwrites nothing',
  async (name) => {
    await writeFile(join(world, name), 'supplier\nb\n')
    const copied = await store({ set: { document: '7' } }, name)
    const folder = dataDir()
    expect(await readFile(join(folder, copied.file), 'utf8')).toBe('supplier\nb\n')
    expect(await readMapping(join(folder, copied.mapping))).toEqual({ set: { document: '7' } })
  },
)

test('an input that is stored again keeps its one folder, and one that is refused leaves nothing', async () => {
  const first = await store({})
  expect(await store({})).toEqual(first)
  expect((await store({ set: { document: '7' } })).hash).not.toBe(first.hash)
  await using _ = await prepare({ set: { document: '8' } })
  expect(await inputs()).toHaveLength(3)
  await _[Symbol.asyncDispose]()
  expect(await inputs()).toHaveLength(2)
})

test('two commands that store the same input at the same time both find it', async () => {
  const [one, two] = await Promise.all([prepare({}), prepare({})])
  const [first, second] = await Promise.all([one.keep(), two.keep()])
  expect(first).toEqual(second)
  expect(await inputs()).toEqual([one.hash])
})

test.each(['file/rows.csv', 'mapping.json', 'lookups/1/suppliers.csv'])(
  'a stored input whose %s was changed is refused, and replaced when the original is stored again',
  async (name) => {
    const mapping = { lookups: { supplier: join(world, 'suppliers.csv') } }
    const { hash, ...stored } = await store(mapping)
    const input = { dataDir: dataDir(), ...stored }
    await refuseDamaged(input)
    await writeFile(join(dataDir(), 'imports/input', hash, name), 'supplier\n')
    await expect(refuseDamaged(input)).rejects.toThrow('is damaged: it was truncated or changed')
    await store(mapping)
    await refuseDamaged(input)
  },
)

test('the copy of a command that was killed is removed a day later', async () => {
  await store({})
  const left = join(dataDir(), 'imports/input/.new-left')
  await mkdir(left)
  await store({})
  expect(await inputs()).toContain('.new-left')
  const twoDaysAgo = Date.now() / 1000 - 2 * 86_400
  await utimes(left, twoDaysAgo, twoDaysAgo)
  await store({})
  expect(await inputs()).toHaveLength(1)
})

test('a message about a copied lookup names the file as its owner knows it', async () => {
  const copied = await store({ lookups: { supplier: join(world, 'suppliers.csv') } })
  const { lookups } = await readMapping(join(dataDir(), copied.mapping))
  const lookup = await readLookup(lookups!['supplier']!)
  expect(lookup.find('b')).toMatchObject({ fault: { message: 'is not in suppliers.csv' } })
})

test('a mapping that is not JSON is refused without quoting the file', async () => {
  await writeFile(join(world, 'secret.env'), 'TOKEN=very-secret\n')
  const error = await readMapping(join(world, 'secret.env')).then(
    () => new Error(),
    (thrown: Error) => thrown,
  )
  expect(error.message).toMatch(/secret\.env is not valid JSON/)
  expect(error.message).not.toContain('TOKEN')
})
