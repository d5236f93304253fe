import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { type ImportOrder, runImport } from '../../../scripts/runs/import.ts'
import { personWho } from '../command-line/person-who.ts'
import { readSettings } from '../../../worker/settings/settings.ts'
import { connectTemporal, createWorld, startTestWorker, until, type World } from '../export/world.ts'
import { addonsCsv, once, ordersCsv, retentionsCsv, timesOf } from './world.ts'

const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 4 }
const soon = { BILLING_SETTLE_SECONDS: '0.1' }

const settingsOf = (world: World) => readSettings({ env: { ...world.env, ...soon }, cwd: world.dataDir })

async function openShop(options: Parameters<typeof createWorld>[0] = {}) {
  const world = await createWorld({ counts, ...options })
  await startTestWorker(world, soon)
  return world
}

async function fileIn(world: World, text: string, name = 'rows.csv'): Promise<string> {
  const file = join(world.dataDir, name)
  await writeFile(file, text)
  return file
}

const importOf = (world: World, words: readonly string[]) =>
  callCommand(world, ['import', ...words], { env: soon })

describe('connector import', () => {
  test('shows the report of a file that was done before, with its exit code', async () => {
    const world = await openShop({
      faults: [{ kind: 'refuse', answer: { detail: 'No.' }, on: 'POST /retentions/', requests: [2] }],
    })
    const file = await fileIn(world, retentionsCsv(6))
    const detached = await importOf(world, ['retentions', file, '--detach', '--json'])
    const { run } = JSON.parse(detached.stdout) as { run: string }
    const client = await connectTemporal()
    await client.workflow.getHandle(run).result()
    const [first, second] = [
      await importOf(world, ['retentions', file]),
      await importOf(world, ['retentions', file]),
    ]
    expect([first.code, second.code]).toEqual([3, 3])
    expect(first.stdout).toContain('5 of 6 retentions done; 1 rejected')
    expect(second.stdout).toBe(first.stdout)
    // The one that was rejected may be sent again.
    const rest = await importOf(world, ['retentions', file, '--done', 'skip', '--json'])
    expect(rest.code).toBe(0)
    expect(JSON.parse(rest.stdout)).toMatchObject({ run: `${run}-2`, counts: { done: 6, skipped: 0 } })
    expect(timesOf(world, 'retentions', 6)).toEqual(once(6))
  })

  test('prints the control totals of a dry run once, also where the file is refused', async () => {
    const world = await openShop()
    const rows = await fileIn(world, retentionsCsv(3))
    const wrong = await fileIn(world, retentionsCsv(3).replace('2026-03-01', '2026-02-30'), 'wrong.csv')
    for (const [file, code] of [
      [rows, 0],
      [wrong, 2],
    ] as const) {
      const told = await importOf(world, ['retentions', file, '--dry-run'])
      const totals = `${told.stdout}${told.stderr}`.match(/Control totals/g)
      expect({ code: told.code, totals }).toEqual({ code, totals: ['Control totals'] })
    }
  })

  test('refuses a file with problems before anything is asked, with every one of them', async () => {
    const world = await createWorld({ counts })
    const rows = retentionsCsv(4).replace('2026-03-01', '2026-02-30').replace(',4.50,', ',4.5O,')
    const { code, stderr } = await importOf(world, ['retentions', await fileIn(world, rows)])
    expect(code).toBe(2)
    expect(stderr).toContain('row 2, date: 2026-02-30')
    // A sheet without its columns has totals that say nothing.
    expect(stderr).toMatch(/row 5, total: 4\.5O[^]*Control totals/)
    expect(stderr).toMatch(/error: rows.csv has 2 problems, so nothing was sent\..*--on-invalid skip/)
    // One line stands for all numbers of a column that can be read in two ways.
    const unclear = retentionsCsv(30)
      .replaceAll(/,(\d)\.50,/g, ',$1.500,')
      .replaceAll('2026-03', '2026-13')
    const unread = await importOf(world, ['retentions', await fileIn(world, unclear)])
    expect(unread.stderr).toMatch(/\(and 8 more\)[^]*\n\.\.\. and 11 more problems\n/)
    expect(unread.stderr).toContain('has 39 problems')
    expect(world.sandbox.control.counters().requests).toBe(0)
    // Programs read the same problems.
    const { stdout } = await importOf(world, ['retentions', await fileIn(world, rows), '--json'])
    expect(JSON.parse(stdout)).toMatchObject({
      error: {
        name: 'RefusedError',
        problemCount: 2,
        problems: [
          { row: 2, column: 'date', value: '2026-02-30', sentence: expect.stringContaining('row 2, date') },
          { row: 5, column: 'total', value: '4.5O', rule: 'number' },
        ],
      },
    })
  })

  test('says everywhere what the service answered to a canary that failed, and never to send the rest as it is', async () => {
    const world = await openShop({
      faults: [{ kind: 'refuse', answer: { supplier: ['Not found.'] }, on: 'POST /retentions/' }],
    })
    const file = await fileIn(world, retentionsCsv(30), 'Marzo 2026.csv')
    const { code, stdout } = await importOf(world, ['retentions', file, '--set', 'discount=0'])
    expect(code).toBe(3)
    expect(stdout).toContain('all 3 rows of the canary failed')
    expect(stdout).toMatch(/^ *\d+ +rejected +supplier: Not found\.$/m)
    const next = stdout.match(/^Next: .*\n.*$/gm)
    expect(next).toEqual([
      `Next: the rows that went first all failed (supplier: Not found.): correct the file, then import it again:\n  npx connector import retentions '${file}' --set discount=0`,
    ])
    const run = /^(import-\S+): /m.exec(stdout)?.[1] ?? ''
    const folder = join(world.dataDir, 'imports', run)
    const report = JSON.parse(await readFile(join(folder, 'report.json'), 'utf8')) as object
    expect(report).toMatchObject({
      ended: { canary: true },
      first: Array.from({ length: 3 }, () => ({ state: 'rejected', message: 'supplier: Not found.' })),
    })
    expect(await readFile(join(folder, 'report.html'), 'utf8')).toContain('supplier: Not found.')
    // Temporal gets neither what the service said nor what the person typed.
    const client = await connectTemporal()
    const { events } = await client.workflow.getHandle(run).fetchHistory()
    const history = JSON.stringify(events).replaceAll(/"data":"([^"]+)"/g, (_, data: string) =>
      Buffer.from(data, 'base64').toString(),
    )
    expect(history).toContain('all 3 rows of the canary failed')
    for (const word of ['Not found.', 'discount=0', '--set']) expect(history).not.toContain(word)
  })

  test('prints the first five rejected rows, and how many more are in rejected.csv', async () => {
    const requests = [5, 12, 19, 26, 33, 40, 47, 54]
    const refused = {
      kind: 'refuse',
      answer: { number: ['No.'] },
      on: 'POST /retentions/',
      requests,
    } as const
    const world = await openShop({ faults: [refused] })
    const { code, stdout } = await importOf(world, ['retentions', await fileIn(world, retentionsCsv(60))])
    expect(code).toBe(3)
    expect(stdout.match(/^ *\d+ +rejected /gm)).toHaveLength(5)
    expect(stdout).toMatch(/rejected +and 3 more in rejected\.csv/)
  })

  test.each([
    [['plans', 'rows.csv'], /"plans" cannot be used for <kind>\. Choose from/],
    [['retentions', 'none.csv'], /none\.csv does not exist\. Check the path/],
    [['retentions', 'rows.csv', '--mapping', 'none.json'], /none\.json does not exist\. Check the path/],
    [
      ['retentions', 'rows.csv', '--input', 'sendAgain=17,abc'],
      /"sendAgain=17,abc" cannot be used for --input <field=value>. Write a whole number from 2/,
    ],
    [
      ['retentions', 'rows.csv', '--input', 'canary=x'],
      /"canary=x" cannot be used for --input <field=value>. Write a whole number/,
    ],
    [['retentions', 'rows.csv', '--expect-total', 'total=1'], /has 1 problem/],
    [['retentions', 'rows.csv', '--local', '--detach'], /--local and --detach cannot be combined/],
  ])('refuses %j with a sentence', async (words, says) => {
    const world = await createWorld({ counts })
    await fileIn(world, retentionsCsv(2))
    const { code, stderr } = await callCommand(world, ['import', ...words], {
      env: { INIT_CWD: world.dataDir },
    })
    expect(code).toBe(2)
    expect(stderr).toMatch(says)
  })
})

const order = (
  file: string,
  {
    yes = false,
    detach = false,
    ...input
  }: Partial<ImportOrder['input'] & { yes: boolean; detach: boolean }> = {},
): ImportOrder & { local: boolean; detach: boolean } => ({
  file,
  reading: [],
  mapping: {},
  input: { kind: 'retentions', ...input },
  yes,
  local: false,
  detach,
})

async function importAt(world: World, person: ReturnType<typeof personWho>, what: ReturnType<typeof order>) {
  const settings = settingsOf(world)
  onTestFinished(() => void (process.exitCode = 0))
  await runImport({ settings, terminal: person.terminal, ...what })
  return process.exitCode
}

const stored = (world: World, resource: 'retentions' | 'orders') =>
  world.sandbox.control.ids({ resource }).length

describe('a person at a terminal', () => {
  test(
    'sees after the canary what was sent and stored, and a no ends it there',
    { tags: ['long'] },
    async () => {
      const world = await openShop()
      const file = await fileIn(world, retentionsCsv(40))
      const wary = personWho(['n'])
      expect(await importAt(world, wary, order(file))).toBe(3)
      expect(stored(world, 'retentions')).toBe(3)
      expect(wary.questions).toEqual(['3 were sent; send the other 37 retentions? [y/N] '])
      expect(wary.notes.join('\n')).toMatch(/Row \d+: done\n {2}supplier +sup_\d\n[^]*\n\+ id +\S+\n/)
      expect(wary.notes.join('\n')).not.toContain('{')

      const sure = personWho(['y'])
      expect(await importAt(world, sure, order(file))).toBe(0)
      expect(sure.questions).toEqual(['3 were sent; send the other 37 retentions? [y/N] '])
      expect(timesOf(world, 'retentions', 40)).toEqual(once(40))
    },
  )

  test('who said no after the canary resolves a row of it without sending others, and is asked again by the same import', async () => {
    const world = await openShop({
      faults: [{ kind: 'reset', effect: 'none', on: 'POST /addons/', requests: [1] }],
    })
    const adding = order(await fileIn(world, addonsCsv(25)), { kind: 'addons' })
    expect(await importAt(world, personWho(['n']), adding)).toBe(3)
    const [run = ''] = await readdir(join(world.dataDir, 'imports'))
    const parked = await readFile(join(world.dataDir, 'imports', run, 'parked.csv'), 'utf8')
    const row = /,(\d+),parked,/.exec(parked)?.[1] ?? ''
    const command = (...words: string[]) => callCommand(world, words, { env: soon })
    const how = ['--rows', row, '--absent', '--why', 'looked', '--by', 'Ana']
    world.sandbox.control.setFaults({
      faults: [{ kind: 'latency', ms: 600_000, on: 'POST /addons/', requests: [1] }],
    })
    expect((await command('run', 'resolve', run, ...how)).stdout).toContain('resolved by Ana')
    // The run that sends this row is still open.
    const sure = personWho(['y'])
    const importing = importAt(world, sure, adding)
    await until(() => sure.notes.some((note) => note.includes('sends rows that were resolved')))
    world.sandbox.control.landLateEffects()
    expect(await importing).toBe(3)
    expect(sure.questions).toEqual(['3 were sent; send the other 22 addons? [y/N] '])
    expect(timesOf(world, 'addons', 25)).toEqual(once(25))
  })

  test('is asked before anything is sent where the file is too short for a canary', async () => {
    const world = await openShop()
    const person = personWho(['n'])
    const file = await fileIn(world, retentionsCsv(5))
    expect(await importAt(world, person, order(file))).toBe(3)
    expect(person.questions).toEqual(['Nothing was sent yet. Send the 5 retentions? [y/N] '])
    expect(person.notes).not.toContain('')
    expect(stored(world, 'retentions')).toBe(0)
    expect(await importAt(world, personWho(['y']), order(file))).toBe(0)
    const [run = ''] = await readdir(join(world.dataDir, 'imports'))
    const report = await readFile(join(world.dataDir, 'imports', run, 'report.json'), 'utf8')
    expect(JSON.parse(report)).toMatchObject({ decisions: [{ about: 'sending' }] })
  })

  test('is not asked with --yes, and reads in the sheet of rejected rows what is wrong in each, without the number of another sheet’s row', async () => {
    const world = await openShop()
    const person = personWho([])
    const text = retentionsCsv(25).replace('2026-03-01', '2026-02-30')
    const skipping = order(await fileIn(world, text), { yes: true, onInvalid: 'skip' })
    expect(await importAt(world, person, skipping)).toBe(3)
    expect(person.questions).toEqual([])
    expect(stored(world, 'retentions')).toBe(24)
    const [run = ''] = await readdir(join(world.dataDir, 'imports'))
    const rejected = await readFile(join(world.dataDir, 'imports', run, 'rejected.csv'), 'utf8')
    expect(rejected).toContain(',2,date: 2026-02-30 is a date that does not exist\n')
  })

  test('types how many are deleted, also with --yes', async () => {
    const world = await openShop()
    const ids = world.sandbox.control.ids({ resource: 'orders' })
    const file = await fileIn(world, ordersCsv(ids))
    const deletes = order(file, { kind: 'delete-orders', yes: true })
    const hasty = personWho(['y'])
    expect(await importAt(world, hasty, deletes)).toBe(3)
    expect(stored(world, 'orders')).toBe(4)
    const careful = personWho(['4'])
    expect(await importAt(world, careful, deletes)).toBe(0)
    expect(careful.questions).toEqual(['Type 4 to delete 4 orders: '])
    expect(stored(world, 'orders')).toBe(0)
  })
})
