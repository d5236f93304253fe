import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { copyInput } from '../../../core/imports/upload.ts'
import { parseMapping, readMapping } from '../../../core/imports/mapping/mapping.ts'
import { readLookup } from '../../../core/imports/mapping/lookup.ts'

let world: string

beforeEach(async () => {
  world = await mkdtemp(join(tmpdir(), 'copy-'))
  const made = world
  onTestFinished(() => rm(made, { recursive: true, force: true }))
  await mkdir(join(world, 'run/input'), { recursive: true })
  await writeFile(join(world, 'rows.csv'), 'supplier\na\n')
  await writeFile(join(world, 'suppliers.csv'), 'a,sup_1\n')
})

const copy = (mapping: object, file = 'rows.csv') =>
  copyInput({ files: { file: join(world, file), mapping }, to: join(world, 'run/input') })

test.each(['../../..', '/etc/x', '..', 'a/b', 'a\0b', '', 'x'.repeat(3_000)])(
  'a lookup for the field %j is refused before anything is copied',
  (field) => {
    expect(() => parseMapping({ lookups: { [field]: 'suppliers.csv' } })).toThrow(/not the name of a field/)
  },
)

test.each(['supplier', ' Supplier ', 'lines.2.name', 'line.amount', 'next_billing'])(
  'a lookup for the field %j is taken',
  (field) => {
    expect(parseMapping({ lookups: { [field]: 'suppliers.csv' } }).lookups).toEqual({
      [field]: 'suppliers.csv',
    })
  },
)

test('the name of a field decides nothing about where its lookup is copied to', async () => {
  const lookups = { '../../..': join(world, 'suppliers.csv'), supplier: join(world, 'suppliers.csv') }
  const { all } = await copy({ lookups })
  expect(all).toEqual(['file/rows.csv', 'mapping.json', 'lookups/1/suppliers.csv', 'lookups/2/suppliers.csv'])
  const names = await readdir(world, { recursive: true, withFileTypes: true })
  const outside = names.filter((entry) => entry.isFile() && !entry.parentPath.includes('/run/input'))
  expect(outside.map(({ name }) => name).toSorted()).toEqual(['rows.csv', 'suppliers.csv'])
})

test.each(['mapping.json', 'lookups', 'lines', 'file'])(
  'a file called %s is copied like any other, and overwrites nothing',
  async (name) => {
    await writeFile(join(world, name), 'supplier\nb\n')
    const copied = await copy({ set: { document: '7' } }, name)
    const folder = join(world, 'run/input')
    expect(await readFile(join(folder, copied.file), 'utf8')).toBe('supplier\nb\n')
    expect(await readMapping(join(folder, copied.mapping))).toEqual({ set: { document: '7' } })
  },
)

test('what was copied before is never overwritten', async () => {
  await copy({})
  await expect(copy({})).rejects.toMatchObject({ code: 'EEXIST' })
})

test('a message about a copied lookup names the file as its owner knows it', async () => {
  const copied = await copy({ lookups: { supplier: join(world, 'suppliers.csv') } })
  const { lookups } = await readMapping(join(world, 'run/input', copied.mapping))
  const lookup = await readLookup(lookups!['supplier']!)
  expect(lookup.find({ text: 'b', row: 1 })).toMatchObject({ fault: { message: 'is not in suppliers.csv' } })
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
