import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesOf, type Manifest } from '../../../core/destinations/manifest.ts'
import { isPublished } from '../../../core/exports/report.ts'
import { listNames } from '../../../sandbox/options.ts'
import { callCommand } from '../command-line/call-command.ts'
import { checkByPython, hasPython, judgeByPython } from './python-checker.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { connectTemporal, createWorld, folderOf, startRun, startTestWorker, type World } from './world.ts'

const sizeOf = async (folder: string, name: string) => (await stat(join(folder, name))).size
const certificateOf = async (folder: string) => await readFile(join(folder, 'certificate.jsonl'), 'utf8')

/** Makes the sizes and the sums of all files fit, as a forger does. */
async function fitManifest(folder: string, text: string): Promise<void> {
  const manifest = JSON.parse(text) as Manifest
  for (const file of filesOf(manifest)) {
    const content = await readFile(join(folder, file.path))
    const sha256 = createHash('sha256').update(content).digest('hex')
    Object.assign(file, { bytes: content.length, sha256 })
  }
  await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest))
}

/** Neither checker accepts it. */
async function expectRejected(world: World, folder: string): Promise<void> {
  if (hasPython) expect(await judgeByPython(folder)).toMatch(/^REJECT /)
  const { code, stdout } = await callCommand(world, ['verify', folder])
  expect(code, stdout).toBe(1)
  expect(stdout).toContain('The export is not what it claims to be')
}

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
  'exports of all lists that change while they are read in ranges are accepted, and their certificates are small',
  { tags: ['long'] },
  async () => {
    const perRequest = { inserts: 1, deletes: 1, updates: 2, restores: 1, lateCommits: 1 }
    const drift = Object.fromEntries(listNames.map((name) => [name, { perRequest }]))
    const world = await createWorld({ counts: { customers: 3_000, subscriptions: 1_300 }, drift })
    await startTestWorker(world, {}, { recordsPerRange: 600 })
    const client = await connectTemporal()
    const input = { resources: [...listNames], parallel: 3 }
    const report = await (await startRun({ client, world, input })).result()
    expect(report.verdict).toBe('proven')
    for (const name of listNames) await expectAccepted(world, folderOf(report, name))
    const folder = folderOf(report, 'customers')
    // As a glob of the shell names them.
    if (hasPython)
      expect(await judgeByPython(folder, `${folder}-none`, folderOf(report, 'plans'))).toMatch(
        /^\S+: ACCEPT .*\n\S+: REJECT .*\n\S+: ACCEPT .*$/,
      )
    expect(await certificateOf(folder)).toMatch(/"range":\{"upTo":"/)
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
    const client = await connectTemporal()
    const input = {
      resources: ['customers' as const, 'subscriptions' as const],
      hash: ['customers.id', 'subscriptions.id'],
    }
    const report = await (await startRun({ client, world, input })).result()
    expect(report.exports.filter(isPublished).flatMap(({ reasons }) => reasons)).toEqual([])
    for (const name of input.resources) {
      const folder = folderOf(report, name)
      await expectAccepted(world, folder)
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
    const client = await connectTemporal()
    for (const value of [null, 'a\u0000b']) {
      world.sandbox.control.setFaults({ faults: [{ kind: 'wrongType', field: 'id', value, records: 2 }] })
      const report = await (await startRun({ client, world, input: { resources: ['plans'] } })).result()
      expect(report.exports.filter(isPublished)).toMatchObject([{ verdict: 'proven', reasons: [] }])
      const folder = folderOf(report, 'plans')
      expect(await certificateOf(folder)).toContain('"left":')
      expect(await readdir(folder)).toContain('rejected.jsonl')
      await expectAccepted(world, folder)
    }
  },
)

test(
  'an export is rejected that lacks a row of a table below, or has it under another record, whatever its manifest says',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { subscriptions: 120 } })
    await startTestWorker(world)
    const client = await connectTemporal()
    const run = await startRun({ client, world, input: { resources: ['subscriptions'] } })
    const folder = folderOf(await run.result(), 'subscriptions')
    await expectAccepted(world, folder)
    const manifest = await readFile(join(folder, 'manifest.json'), 'utf8')
    const path = join(folder, 'subscription_lines.csv')
    const lines = await readFile(path, 'utf8')
    const { rows } = (JSON.parse(manifest) as Manifest).tables.find(
      ({ name }) => name === 'subscription_lines',
    )!
    const last = lines.trimEnd().split('\n').at(-1)!
    await writeFile(path, lines.slice(0, -last.length - 1))
    await fitManifest(folder, manifest.replaceAll(`"rows": ${rows},`, `"rows": ${rows - 1},`))
    await expectRejected(world, folder)
    const [, first] = lines.split('\n')
    await writeFile(path, lines.replace(last, last.replace(/^[^,]+,\d+/, `${first!.split(',')[0]},999`)))
    await fitManifest(folder, manifest)
    await expectRejected(world, folder)
  },
)

test(
  'an export whose certificate lacks the second look at the statuses, or the read of one of them, is rejected',
  { tags: ['long'] },
  async () => {
    const faults = [{ kind: 'hide', statuses: ['cancelled'] } as const]
    const world = await createWorld({ counts: { subscriptions: 300 }, faults })
    await startTestWorker(world)
    const client = await connectTemporal()
    const run = await startRun({ client, world, input: { resources: ['subscriptions'] } })
    const folder = folderOf(await run.result(), 'subscriptions')
    await expectAccepted(world, folder)
    const [text, manifest] = [
      await certificateOf(folder),
      await readFile(join(folder, 'manifest.json'), 'utf8'),
    ]
    const lines = text.split('\n')
    const looked = lines.findIndex((line) => line.startsWith('{"looked"'))
    const status = lines.findLastIndex((line) => line.startsWith('{"range"'))
    const { windows } = JSON.parse(manifest) as { windows: number }
    for (const [from, count] of [
      [looked, 1],
      [status, lines.length - status - 2],
    ] as const) {
      const forged = lines.toSpliced(from, count).join('\n')
      const left =
        windows - lines.slice(from, from + count).filter((line) => line.startsWith('{"page"')).length
      await writeFile(
        join(folder, 'certificate.jsonl'),
        forged.replace(`"windows":${windows}`, `"windows":${left}`),
      )
      await fitManifest(folder, manifest.replace(`"windows": ${windows}`, `"windows": ${left}`))
      await expectRejected(world, folder)
    }
  },
)

test(
  'an incremental export, one in another form and one without its order column are accepted, and an unproven one says where its chain broke',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { customers: 700 } })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
    const client = await connectTemporal()
    const start = async (more: object) =>
      await (await startRun({ client, world, input: { resources: ['customers'], ...more } })).result()
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
