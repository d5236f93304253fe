import { mkdir, mkdtemp, readdir, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { allowedRoot, resolveInside } from '../../../core/storage/inside.ts'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { createWorkplace } from '../destinations/publication.ts'

let world: string
let dataDir: string
let shared: string
let elsewhere: string

beforeEach(async () => {
  world = await realpath(await mkdtemp(join(tmpdir(), 'roots-')))
  const made = world
  onTestFinished(() => rm(made, { recursive: true, force: true }))
  dataDir = join(world, 'data')
  shared = join(world, 'shared')
  elsewhere = join(world, 'elsewhere')
  for (const folder of [dataDir, shared, elsewhere]) await mkdir(folder)
})

const rootFor = (out: string) => allowedRoot({ out, dataDir, outDirs: [shared] })

test('a folder in the data folder or in an allowed one may be published to, whether it exists or not', async () => {
  await mkdir(join(dataDir, 'reports'))
  expect(await rootFor('reports')).toBe(join(dataDir, 'reports'))
  expect(await rootFor('not/yet')).toBe(join(dataDir, 'not/yet'))
  expect(await rootFor(shared)).toBe(shared)
  expect(await rootFor(join(shared, 'a/b'))).toBe(join(shared, 'a/b'))
  expect(await rootFor('..data')).toBe(join(dataDir, '..data'))
})

test('an allowed folder may itself be a link of the administrator', async () => {
  const linked = join(world, 'linked')
  await symlink(elsewhere, linked)
  expect(await allowedRoot({ out: join(linked, 'a'), dataDir, outDirs: [linked] })).toBe(join(linked, 'a'))
})

const nothing = async (): Promise<void> => undefined
const linkTo = (target: string) => (): Promise<void> => symlink(target, join(shared, 'x'))
const linkOut =
  (below = '') =>
  (): Promise<void> =>
    symlink(join(elsewhere, below), join(shared, 'x'))

test.each<[string, () => Promise<void>, string]>([
  ['a link', linkOut(), 'x'],
  ['a folder below a link', linkOut(), 'x/below'],
  ['a link to a link', linkTwice, 'x'],
  ['a link to what does not exist yet', linkOut('new'), 'x'],
  ['a relative link', linkTo('../elsewhere'), 'x'],
  ['a link that leads in a circle', linkTo('x'), 'x'],
  ['a path with ..', nothing, '../elsewhere'],
  ['a NUL byte', nothing, 'a\0b'],
])('%s that leads out of an allowed folder is refused', async (_, prepare, out) => {
  await prepare()
  await expect(rootFor(`${shared}/${out}`)).rejects.toThrow(/lies outside the data folder/)
})

async function linkTwice(): Promise<void> {
  await symlink(elsewhere, join(shared, 'y'))
  await symlink('y', join(shared, 'x'))
}

test('a link that stays inside is followed', async () => {
  await mkdir(join(shared, 'real'))
  await symlink('real', join(shared, 'x'))
  expect(await resolveInside({ root: shared, path: join(shared, 'x/new') })).toBe(join(shared, 'real/new'))
})

test.each(['customers', 'test'])(
  'nothing is published through a link called %s that somebody left in a shared folder',
  async (name) => {
    await symlink(elsewhere, join(shared, name))
    const workplace = await createWorkplace()
    onTestFinished(() => workplace.close())
    const options = { folder: shared, testMode: name === 'test' }
    const publication = await workplace.toPublication('customers', [['{"id":"a"}']], options)
    await expect(createCsvDestination().publish(publication)).rejects.toThrow(/link that leads out of/)
    expect(await readdir(elsewhere)).toEqual([])
  },
)
