import { execFileSync } from 'node:child_process'
import { chmod, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  connectTemporal,
  createWorld,
  openTestWorker,
  startRun,
  startTestWorker,
  until,
  type World,
} from '../export/world.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { callCommand } from './call-command.ts'

const nowhere = { env: {} } as unknown as World

describe('connector completion', () => {
  test('completes commands, resources, options and their values in bash', async () => {
    const { stdout } = await callCommand(nowhere, ['completion', 'bash'])
    const complete = (...words: string[]) => {
      const list = words.map((word) => `'${word}'`).join(' ')
      const tail = `COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _connector; echo "\${COMPREPLY[@]}"`
      return execFileSync('bash', ['-c', `${stdout}\n${tail}`], { encoding: 'utf8' }).trim()
    }
    expect(complete('connector', 'expo')).toBe('export')
    expect(complete('connector', 'export', 'cust')).toBe('customers')
    expect(complete('connector', 'export', '--excl')).toBe('--exclude')
    expect(complete('connector', 'export', '--to', 'p')).toBe('parquet postgres')
    expect(complete('connector', 'recover', '--reason', 'gate')).toBe('gateway_issue')
    expect(complete('connector', 'schedule', 'tri')).toBe('trigger')
    expect(complete('connector', 'import', 'delete')).toBe('delete-orders')
    expect(complete('connector', 'run', 'resol')).toBe('resolve')
    expect(complete('connector', 'run', 'list', '--verdict', 'prov')).toBe('proven')
    expect(complete('connector', 'state', 'reset', 'pla')).toBe('plans')
  })

  test('has every command for fish and zsh, too', async () => {
    const fish = (await callCommand(nowhere, ['completion', 'fish'])).stdout
    expect(fish).toContain("complete -c connector -n '__fish_use_subcommand' -a recover")
    expect(fish).toContain("-n '__fish_seen_subcommand_from export' -l mode -x -a 'full incremental'")
    const zsh = (await callCommand(nowhere, ['completion', 'zsh'])).stdout
    expect(zsh).toMatch(/^autoload -U \+X bashcompinit && bashcompinit\n/)
    expect(await callCommand(nowhere, ['completion', 'bsh'])).toMatchObject({
      code: 2,
      stderr: 'error: There is no shell bsh. Did you mean bash? Choose from bash, zsh, fish.\n',
    })
  })
})

test.each([
  [
    ['run', 'limits', 'x', '--max-changes', '2'],
    "unknown option '--max-changes'; did you mean --input maxChanges=<value>?",
  ],
  [['run', 'limits', 'x', '--rate', '2'], "required option '--why <reason>' not specified; see --help."],
  [['run', 'resolve', 'x', '--whi', 'y'], "unknown option '--whi'; did you mean --why?"],
  [['run', 'resolve', 'x', '--why', 'y'], "required option '--rows <rows>' not specified; see --help."],
  [['prune'], "required option '--older-than <time>' not specified; see --help."],
])('%j names an option that does not exist before one that is missing', async (words, says) => {
  expect(await callCommand(nowhere, words)).toMatchObject({ code: 2, stderr: `error: ${says}\n` })
})

test('rows that are no list of numbers are told how to be written', async () => {
  const words = ['run', 'resolve', 'x', '--why', 'y', '--drop', '--rows', '17-20']
  const instead = 'Write a whole number from 1, or several, separated by commas.'
  const stderr = `error: "17-20" cannot be used for --rows <rows>. ${instead}\n`
  expect(await callCommand(nowhere, words)).toMatchObject({ code: 2, stderr })
})

test('run open opens the page of a run, and prints its path where no program opens it', async () => {
  const world = await createWorld({ counts: { plans: 5 } })
  await startTestWorker(world)
  const client = await connectTemporal()
  const { run } = await (await startRun({ client, world, input: { resources: ['plans'] } })).result()
  const bin = await temporaryFolder()
  const PATH = process.platform === 'darwin' ? '/nowhere' : bin
  const without = await callCommand(world, ['run', 'open', run, '--json'], { env: { PATH } })
  const { page, opened } = JSON.parse(without.stdout) as { page: string; opened: boolean }
  expect(opened).toBe(false)
  expect(await readFile(page, 'utf8')).toContain('<!doctype html>')
  const seen = join(bin, 'seen')
  const opener = join(bin, process.platform === 'darwin' ? 'open' : 'xdg-open')
  await writeFile(opener, `#!/bin/sh\necho "$1" > ${seen}\n`)
  await chmod(opener, 0o755)
  const env = { PATH: `${bin}:${process.env['PATH']}` }
  expect((await callCommand(world, ['run', 'open', run], { env })).stdout).toBe(`Opened ${page}\n`)
  await until(async () => (await readFile(seen, 'utf8').catch(() => '')) === `${page}\n`)
  expect(await callCommand(world, ['run', 'open', 'nothing'])).toMatchObject({ code: 2 })
})

test(
  'state shows the watermarks, and resets one with a reason while no worker runs',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { plans: 5 } })
    const env = { BILLING_READ_LAG_SECONDS: '0' }
    const worker = await openTestWorker(world, env)
    const client = await connectTemporal()
    const input = { resources: ['plans' as const], to: ['csv' as const, 'duckdb' as const] }
    const { run } = await (await startRun({ client, world, input })).result()
    const shown = async () =>
      JSON.parse((await callCommand(world, ['state', 'show', '--json'])).stdout) as {
        watermarks: { resource: string; destination: string; run: string; readUpTo: string }[]
      }
    const before = await shown()
    expect(before.watermarks.map(({ resource, destination }) => [resource, destination])).toEqual([
      ['plans', 'csv'],
      ['plans', 'duckdb'],
    ])
    expect(before.watermarks[0]).toMatchObject({ run })
    const table = (await callCommand(world, ['state', 'show'])).stdout
    expect(table).toMatch(/^resource +destination +service +only/m)
    expect(table).toMatch(/^plans +duckdb live +http:\/\/\S+ /m)
    const reset = ['state', 'reset', 'plans', '--to', 'duckdb', '--why', 'restored', '--by', 'Ana']
    expect(await callCommand(world, reset)).toMatchObject({ code: 2 })
    await worker.stop()
    expect(await callCommand(world, ['state', 'reset', 'plans'])).toMatchObject({ code: 2 })
    expect(await callCommand(world, reset)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Reset 1'),
    })
    expect((await shown()).watermarks).toHaveLength(1)
    const log = await readFile(join(world.dataDir, 'exports', 'watermark-resets.jsonl'), 'utf8')
    expect(JSON.parse(log)).toMatchObject({ by: 'Ana', why: 'restored', watermarks: [{ resource: 'plans' }] })
    expect(await callCommand(world, reset)).toMatchObject({ code: 2 })
    // The next incremental export reads the whole list for DuckDB.
    const again = await openTestWorker(world, env)
    onTestFinished(() => again.stop())
    const incremental = {
      resources: ['plans' as const],
      to: ['duckdb' as const],
      mode: 'incremental' as const,
    }
    const report = await (await startRun({ client, world, input: incremental })).result()
    expect(report.exports).toMatchObject([{ mode: 'full' }])
  },
)

test(
  'connector prune removes old exports, but none that a link, a proof or a publication still needs',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { plans: 5, customers: 20 } })
    await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
    const client = await connectTemporal()
    const run = async (input: object) => (await (await startRun({ client, world, input })).result()).run
    const plans = { resources: ['plans' as const] }
    const first = await run(plans)
    const waiting = await run(plans)
    await run({ resources: ['customers'], filters: { email: 'one@example.com' } })
    await run(plans)
    const capped = await run({ resources: ['customers'], maxPages: 1 })
    // One was asked to go elsewhere, and has not arrived.
    const plan = join(world.dataDir, 'parts', waiting, 'plan.json')
    await writeFile(plan, (await readFile(plan, 'utf8')).replace('"to":["csv"]', '"to":["csv","duckdb"]'))
    expect((await callCommand(world, ['prune', '--older-than', '30d', '--yes'])).stdout).toBe(
      'Nothing to remove.\n',
    )
    const database = new DatabaseSync(join(world.dataDir, 'state.db'))
    database.exec(
      `update publications set body = json_set(body, '$.startedAt',
         strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(body, '$.startedAt'), '-40 days'))`,
    )
    database.close()
    const dry = await callCommand(world, ['prune', '--older-than', '30d', '--dry-run', '--json'])
    const { old } = JSON.parse(dry.stdout) as { old: { run: string; folder: string }[] }
    expect(old.map((one) => one.run)).toEqual([first, capped])
    const { folder } = old[0]!
    // A link of one's own counts, too.
    const link = join(dirname(folder), 'mine')
    await symlink(basename(folder), link)
    const linked = await callCommand(world, ['prune', '--older-than', '30d', '--dry-run', '--json'])
    expect(JSON.parse(linked.stdout)).toMatchObject({ old: [{ run: capped }] })
    await rm(link)
    expect(await callCommand(world, ['prune', '--older-than', '30d'])).toMatchObject({ code: 2 })
    // Meant as days, and not 30 s.
    expect(await callCommand(world, ['prune', '--older-than', '30', '--dry-run'])).toMatchObject({ code: 2 })
    expect((await stat(folder)).isDirectory()).toBe(true)
    expect(await callCommand(world, ['prune', '--older-than', '30d', '--yes'])).toMatchObject({ code: 0 })
    await expect(stat(folder)).rejects.toThrow('ENOENT')
    const again = await callCommand(world, ['prune', '--older-than', '30d', '--dry-run'])
    expect(again.stdout).toBe('Nothing to remove.\n')
    const verified = await callCommand(world, [
      'verify',
      join(world.dataDir, 'exports', 'plans', 'latest-proven'),
    ])
    expect(verified).toMatchObject({ code: 0 })
  },
)
