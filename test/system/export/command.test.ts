import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { freePorts } from '../../../worker/free-ports.ts'
import { local, openWorld, startCommand, type World } from './world.ts'

let world: World

beforeAll(async () => {
  world = await openWorld({ counts: { plans: 3 } })
})
afterAll(() => world.close())

/** How a command failed: its exit code, its one line after what it waited for, and how long that took. */
async function failureOf(words: readonly string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr, ms } = await callCommand(world, words, { env })
  expect(stderr).toMatch(/^(Waiting for [^\n]+\n)*error: [^\n]+\n$/)
  expect(stdout).toBe('')
  return { code, says: stderr, ms }
}

describe('an export from the command line with bad input', () => {
  test.each([
    ['a token file that is not there', [], { BILLING_TOKEN: '', BILLING_TOKEN_FILE: '/nowhere' }, '/nowhere'],
    ['an unknown resource', ['customer'], {}, 'customers, subscriptions, plans, retentions'],
    ['an unknown option', ['--fliter', 'a=b'], {}, 'did you mean --filter?'],
    ['an unknown destination', ['--to', 'csvs'], {}, 'csvs'],
    [
      'a filter value that is none',
      ['subscriptions', '--filter', 'status=ended'],
      {},
      'The filter status=ended of subscriptions must be one of',
    ],
    ['an unknown column', ['--exclude', 'customers.emial'], {}, 'Did you mean customers.email?'],
    ['a hash without a key', ['--local', '--hash', 'customers.email'], {}, 'CONNECTOR_HASH_KEY'],
    ['a folder outside', ['--local', '--input', 'out=/etc/elsewhere'], {}, 'CONNECTOR_OUT_DIRS'],
    ['what is started and left by the same command', ['--local', '--detach'], {}, 'npx connector up'],
  ])('is refused at once where there is %s', async (_, words, env, says) => {
    const failure = await failureOf(['export', ...words], env)
    expect(failure).toMatchObject({ code: 2, says: expect.stringContaining(says) })
    expect(failure.ms).toBeLessThan(10_000)
    expect(await readdir(world.dataDir)).toEqual([])
  })

  test('names all that is wrong with the settings, in one line', async () => {
    const wrong = {
      BILLING_TOKEN: '',
      BILLING_WORKSPACE: '',
      BILLING_BASE_URL: 'api',
      BILLING_TEST_MODE: 'yes',
    }
    const { code, says } = await failureOf(['export'], wrong)
    expect(code).toBe(2)
    for (const name of Object.keys(wrong)) expect(says).toContain(name)
  })

  test('tells a program so in one document', async () => {
    const { ended } = startCommand(world, ['export', 'customer', '--json'])
    const { code, stdout, stderr } = await ended
    expect(code).toBe(2)
    expect(JSON.parse(stdout)).toMatchObject({
      error: { name: 'UsageError', message: expect.stringContaining('customer') },
    })
    expect(stderr).toMatch(/^(Waiting for [^\n]+\n)*error: [^\n]+\n$/)
  })
})

describe('an export with --local', () => {
  test.each([
    ['token', { BILLING_TOKEN: 'wrong' }, 2, 'does not accept the token'],
    ['workspace', { BILLING_WORKSPACE: 'acc_other' }, 2, 'check the workspace'],
    ['host', { BILLING_BASE_URL: 'https://billing.invalid' }, 1, 'check the address'],
  ])('says within seconds that the %s is wrong, before anything is started', async (_, env, code, says) => {
    const failure = await failureOf(['export', '--local'], { ...local, ...env })
    expect(failure).toMatchObject({ code, says: expect.stringContaining(says) })
    expect(failure.ms).toBeLessThan(15_000)
    expect(await readdir(world.dataDir)).toEqual([])
  })

  test('says what it waits for while the service does not answer', async () => {
    world.sandbox.control.setFaults({ faults: [{ kind: 'latency', ms: 2_000 }] })
    onTestFinished(() => world.sandbox.control.setFaults({ faults: [] }))
    const { says } = await failureOf(['export', '--local'], { ...local, BILLING_TOKEN: 'wrong' })
    expect(says).toMatch(`Waiting for the service at ${world.sandbox.url} ...`)
  })

  test('says at once that the data folder can not be one', async () => {
    const file = join(world.dataDir, '..', `${world.workspace}.txt`)
    await writeFile(file, '')
    const failure = await failureOf(['export', '--local'], {
      ...local,
      CONNECTOR_DATA_DIR: join(file, 'data'),
    })
    expect(failure).toMatchObject({
      code: 2,
      says: expect.stringContaining('a part of the path is not a folder'),
    })
    expect(failure.says).toContain('CONNECTOR_DATA_DIR')
  })

  test('says at once that the data folder is not its user’s to write', { tags: ['long'] }, async () => {
    const folder = join(world.dataDir, '..', `${world.workspace}-closed`)
    await mkdir(folder, { mode: 0o555 })
    // Nothing is closed to root, so the command then runs as nobody.
    const uid = process.getuid?.() === 0 ? 65_534 : undefined
    const env = { ...local, CONNECTOR_DATA_DIR: folder, HOME: '/nonexistent' }
    const { code, stderr } = await startCommand(world, ['export', '--local'], { env, uid }).ended
    expect(code).toBe(2)
    expect(stderr).toMatch(/^error: [^\n]*permission is denied[^\n]*CONNECTOR_DATA_DIR[^\n]*\n$/)
    expect(await readdir(folder)).toEqual([])
  })
})

describe('a command', () => {
  test(
    'says what it waits for, and within seconds that Temporal does not answer',
    { tags: ['long'] },
    async () => {
      const [port] = await freePorts(1)
      const env = { TEMPORAL_ADDRESS: `127.0.0.1:${port}` }
      const failures = await Promise.all([
        failureOf(['run', 'list'], env),
        failureOf(['export', 'plans'], env),
      ])
      for (const failure of failures) {
        expect(failure).toMatchObject({ code: 2, says: expect.stringContaining('Temporal does not answer') })
        expect(failure.says).toContain(`Waiting for Temporal at 127.0.0.1:${port} ...\n`)
        expect(failure.ms).toBeLessThan(15_000)
      }
    },
  )

  test.each(['show', 'watch', 'report', 'stop'])('says that there is no such run: %s', async (word) => {
    const failure = await failureOf(['run', word, 'export-nothing'])
    expect(failure).toMatchObject({ code: 2, says: expect.stringContaining('export-nothing') })
  })

  test('says that it waits for a worker, and that none listens', async () => {
    const failure = await failureOf(['export', 'plans'])
    expect(failure).toMatchObject({ code: 2, says: expect.stringContaining('No worker listens') })
    expect(failure.says).toMatch(/^Waiting for a worker on the task queue /)
  })
})
