import { mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isPublished } from '../../../core/exports/report.ts'
import { listNames } from '../../../sandbox/options.ts'
import { callCommand } from '../command-line/call-command.ts'
import { checkByPython, hasPython, judgeByPython } from './python-checker.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { createWorld, folderOf, rowsOf, runExport, startTestWorker, type World } from './world.ts'

const sizeOf = async (folder: string, name: string) => (await stat(join(folder, name))).size
const certificateOf = async (folder: string) => await readFile(join(folder, 'certificate.jsonl'), 'utf8')

/** Both checkers accept it. */
async function expectAccepted(world: World, folder: string): Promise<void> {
  if (hasPython)
    expect(await judgeByPython(folder)).toMatch(
      /^ACCEPT \d+ records of \w+( and \d+ in rejected\.jsonl)?, (status=\w+, )?(changed since \S+, )?complete through /,
    )
  expect(await callCommand(world, ['verify', folder])).toMatchObject({ code: 0 })
}

test.runIf(hasPython)('an export that is rejected decides, however many cannot be checked', async () => {
  const folder = await temporaryFolder()
  const [excel, deep] = [join(folder, 'excel'), join(folder, 'deep')]
  const manifests = {
    [excel]: '{"tables":[],"destination":"csv","dialect":{"formulaGuard":true}}',
    [deep]: '['.repeat(100_000),
  }
  for (const [to, manifest] of Object.entries(manifests)) {
    await mkdir(to)
    await writeFile(join(to, 'manifest.json'), manifest)
  }
  expect(await checkByPython([excel])).toMatchObject({ code: 2 })
  const { code, stdout } = await checkByPython([deep, excel])
  expect([code, stdout]).toEqual([1, expect.stringMatching(/: REJECT .*\n.*: NOT CHECKED .*\n$/)])
})

test.runIf(hasPython)('what is no export is rejected in words', async () => {
  const folder = await temporaryFolder()
  await writeFile(join(folder, 'manifest.json'), '{}')
  expect(await checkByPython([folder])).toMatchObject({
    code: 1,
    stdout: "REJECT it cannot be read as an export: KeyError('tables')\n",
  })
  expect(await checkByPython([join(folder, 'none')])).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^REJECT \S+manifest\.json cannot be read: No such file or directory\n$/),
  })
})

test.runIf(hasPython)('documents by id are accepted only where none was left unread', async () => {
  const folder = await temporaryFolder()
  const manifest = {
    resource: 'creditnotes',
    mode: 'byId',
    destination: 'csv',
    dialect: { formulaGuard: false },
    ordering: 'id',
    records: 0,
    tables: [],
    totals: { columns: {} },
    rejected: { rows: 0, files: [] },
  }
  for (const [verdict, code] of [
    ['proven', 0],
    ['unproven', 3],
  ] as const) {
    await writeFile(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, verdict }))
    expect(await checkByPython([folder])).toMatchObject({ code })
  }
})

// Elsewhere, no shell limits the memory of a program.
test.runIf(hasPython && process.platform === 'linux')(
  'no export is rejected for want of memory',
  async () => {
    const folder = await temporaryFolder()
    const manifest = join(folder, 'manifest.json')
    await writeFile(manifest, '')
    await truncate(manifest, 2 ** 30)
    expect(await checkByPython([folder], 'ulimit -v 300000; ')).toMatchObject({
      code: 2,
      stdout: 'NOT CHECKED there is too little memory here\n',
    })
  },
)

test(
  'exports of all lists, read in ranges while records come and go and requests fail, are whole and accepted, and their certificates are small',
  { tags: ['long'] },
  async () => {
    const perRequest = { inserts: 1, deletes: 1, updates: 2, restores: 1, lateCommits: 1 }
    const world = await createWorld({
      counts: { customers: 3_000, subscriptions: 1_300 },
      drift: Object.fromEntries(listNames.map((name) => [name, { perRequest }])),
      faults: [
        { kind: 'reset', rate: 0.01 },
        { kind: 'error', rate: 0.01 },
        { kind: 'cutBody', rate: 0.01 },
      ],
    })
    await startTestWorker(world, {}, { recordsPerRange: 600 })
    const { control } = world.sandbox
    const mark = control.mark()
    const report = await runExport(world, { parallel: 3 })
    control.setDrift({ drift: {} })
    const all = `${listNames.length} of ${listNames.length} lists`
    expect(report).toMatchObject({ verdict: 'proven', summary: expect.stringContaining(`${all} proven`) })
    for (const name of listNames) {
      await expectAccepted(world, folderOf(report, name))
      const ids = (await rowsOf(report, name)).map(({ id }) => id)
      expect(ids).toHaveLength(new Set(ids).size)
      const throughout = control.ids({ resource: name, since: mark }).map(String)
      expect(new Set(throughout).difference(new Set(ids))).toEqual(new Set())
    }
    const folder = folderOf(report, 'customers')
    // As a glob of the shell names them.
    if (hasPython)
      expect(await judgeByPython(folder, `${folder}-none`, folderOf(report, 'plans'))).toMatch(
        /^\S+: ACCEPT .*\n\S+: REJECT .*\n\S+: ACCEPT .*$/,
      )
    expect((await certificateOf(folder)).match(/"range":/g)).toHaveLength(3)
    const tables = (await sizeOf(folder, 'customers.csv')) + (await sizeOf(folder, 'customer_contacts.csv'))
    expect((await sizeOf(folder, 'certificate.jsonl')) / tables).toBeLessThan(0.005)
  },
)

test(
  'an export with hashed ids, swept records of one time and hidden statuses is accepted, and its certificate holds no id',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({
      counts: { customers: 1_000, subscriptions: 400 },
      ties: { customers: { groups: [230, 150] } },
      tieOrder: 'stable',
      faults: [{ kind: 'hide', statuses: ['cancelled'] }],
    })
    await startTestWorker(world, { CONNECTOR_HASH_KEY: 'a key of sixteen or more' })
    const input = {
      resources: ['customers' as const, 'subscriptions' as const],
      hash: ['customers.id', 'subscriptions.id'],
    }
    const report = await runExport(world, input)
    expect(report.exports.filter(isPublished).flatMap(({ reasons }) => reasons)).toEqual([])
    for (const name of input.resources) {
      const folder = folderOf(report, name)
      await expectAccepted(world, folder)
      const ids = (await rowsOf(report, name)).map(({ id }) => id)
      expect([ids.length, new Set(ids).size]).toEqual([
        world.sandbox.control.ids({ resource: name }).length,
        ids.length,
      ])
      const text = await certificateOf(folder)
      for (const id of world.sandbox.control.ids({ resource: name })) expect(text).not.toContain(String(id))
      expect(text).toMatch(name === 'customers' ? /"swept":/ : /"looked":.*"hidden":true/)
    }
  },
)

test(
  'an export with records that have no row, because their id is missing or cannot be kept, is accepted',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { plans: 300 } })
    await startTestWorker(world)
    for (const value of [null, 'a\u0000b']) {
      world.sandbox.control.setFaults({ faults: [{ kind: 'wrongType', field: 'id', value, records: 2 }] })
      const report = await runExport(world, { resources: ['plans'] })
      expect(report.exports.filter(isPublished)).toMatchObject([{ verdict: 'proven', reasons: [] }])
      const folder = folderOf(report, 'plans')
      expect(await certificateOf(folder)).toContain('"left":')
      expect(await readdir(folder)).toContain('rejected.jsonl')
      await expectAccepted(world, folder)
    }
  },
)

test(
  'an incremental export, one in another form and one without its order column are accepted, and an unproven one says where its chain broke',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { customers: 700 } })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
    const start = async (more: object) => await runExport(world, { resources: ['customers'], ...more })
    const full = await start({ exclude: ['customers.created'], to: ['csv', 'parquet', 'duckdb'] })
    await expectAccepted(world, folderOf(full, 'customers'))
    for (const { destination, where } of full.exports.filter(isPublished))
      if (destination === 'parquet') {
        expect(await callCommand(world, ['verify', where])).toMatchObject({ code: 0 })
        if (hasPython) expect(await judgeByPython(where)).toMatch(/^NOT CHECKED /)
      }
    await start({ mode: 'incremental' })
    const { control } = world.sandbox
    for (const id of control.ids({ resource: 'customers' }).slice(100, 330))
      control.update({ resource: 'customers', id, fields: { name: 'changed' } })
    const second = folderOf(await start({ mode: 'incremental' }), 'customers')
    expect(await certificateOf(second)).toContain('"key":"updated"')
    await expectAccepted(world, second)

    control.setFaults({ faults: [{ kind: 'wrongType', field: 'created', value: 'yesterday', records: 1 }] })
    const unproven = folderOf(await start({}), 'customers')
    expect(await certificateOf(unproven)).toMatch(/\n\{"broken":".*"\}\n/)
    expect(await callCommand(world, ['verify', unproven])).toMatchObject({ code: 3 })
    if (!hasPython) return
    const said = { code: 3, stdout: expect.stringMatching(/^UNPROVEN 700 records of \w+: /) as unknown }
    expect(await checkByPython([unproven])).toMatchObject(said)
    // Beside others, it decides unless one is rejected.
    expect(await checkByPython([second, unproven])).toMatchObject({ code: 3 })
    expect(await checkByPython([unproven, `${second}-none`])).toMatchObject({ code: 1 })
  },
)
