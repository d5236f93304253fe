import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadClientConnectConfig } from '@temporalio/envconfig'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SettingsError } from '../../worker/settings/environment.ts'
import { readPlaces, readSettings } from '../../worker/settings/settings.ts'
import { described, describeSettings, listSettings, variables } from '../../worker/settings/variables.ts'

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'settings-'))
})
afterEach(() => rmSync(cwd, { recursive: true }))

const enough = {
  BILLING_BASE_URL: 'https://api.example.test/v1/',
  BILLING_TOKEN: 't0ken',
  BILLING_WORKSPACE: 'acc_1',
}

const read = (env: Record<string, string> = {}) => readSettings({ env: { ...enough, ...env }, cwd })

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readSettings({ env, cwd })
  } catch (error) {
    if (error instanceof SettingsError) return error.problems
    throw error
  }
  return []
}

describe('settings', () => {
  it('refuse a state on PostgreSQL without a bucket for its files, in one sentence', () => {
    const stateUrl = { CONNECTOR_STATE_URL: 'postgres://connector:p@localhost/state' }
    expect(problemsOf({ ...enough, ...stateUrl })).toEqual([
      expect.stringMatching(
        /^CONNECTOR_STATE_URL is set, and CONNECTOR_FILES_URL is not: .* bucket\. Set it to/,
      ),
    ])
    expect(() => readPlaces({ env: { ...enough, ...stateUrl }, cwd })).toThrow('CONNECTOR_FILES_URL')
    const filesUrl = { CONNECTOR_FILES_URL: 's3://exports/acc_1' }
    expect(problemsOf({ ...enough, ...stateUrl, ...filesUrl })).toEqual([])
    expect(problemsOf({ ...enough, ...filesUrl })).toEqual([])
  })

  it('need an address, a token and a workspace, and have a default for the rest', () => {
    const { billing, environment: _, ...others } = read()
    expect(billing).toEqual({
      baseUrl: 'https://api.example.test/v1',
      token: expect.any(Function),
      workspace: 'acc_1',
      testMode: false,
      requestsPerSecond: 10,
      concurrency: 4,
      timeoutSeconds: 30,
    })
    expect(others).toEqual({
      recordsPerRange: 1_000,
      readLagMs: 60_000,
      settleSeconds: 60,
      state: { folder: join(cwd, 'data') },
      dataDir: join(cwd, 'data'),
      outDirs: [],
      taskQueue: 'billing-acc_1',
      channels: [],
      payloadKeys: [],
      logLevel: 'info',
      secretFiles: [],
      s3: { allowHttp: false },
    })
  })

  it('have the lag in whole milliseconds, no fewer than it says', () => {
    const lagOf = (seconds: string) => read({ BILLING_READ_LAG_SECONDS: seconds }).readLagMs
    expect(['0', '0.0005', '1.001', '2.3456'].map(lagOf)).toEqual([0, 1, 1_001, 2_346])
  })

  it('name every problem at once, each as what, where and what to do', () => {
    const problems = problemsOf({
      BILLING_BASE_URL: 'ftp://x',
      BILLING_TEST_MODE: 'yes',
      BILLING_CONCURRENCY: '2.5',
      BILLING_REQUESTS_PER_SECOND: '1e9',
    })
    expect(problems).toHaveLength(6)
    expect(problems).toContain(
      'BILLING_TEST_MODE ("yes") in the environment is not one of true, false; use one of these words.',
    )
    for (const name of ['BILLING_BASE_URL', 'BILLING_WORKSPACE', 'BILLING_TOKEN', 'BILLING_CONCURRENCY']) {
      expect(problems.join('\n')).toContain(name)
    }
    for (const problem of problems) expect(problem).toMatch(/; .+\.$/)
  })

  it('say of a bucket that is written wrongly what to write', () => {
    expect(problemsOf({ ...enough, CONNECTOR_FILES_URL: 's3:/exports/billing' })).toEqual([
      'CONNECTOR_FILES_URL ("s3:/exports/billing") in the environment is not the address of a bucket; use one like s3://bucket/prefix, in letters, digits and -._ only.',
    ])
    expect(read({ CONNECTOR_FILES_URL: 's3://exports/billing/' }).filesUrl).toEqual({
      bucket: 'exports',
      prefix: 'billing',
    })
  })

  it('take what .env gives where the real environment gives nothing, and an empty variable gives nothing', () => {
    writeFileSync(
      join(cwd, '.env'),
      'BILLING_CONCURRENCY=7\nBILLING_TIMEOUT_SECONDS="9"\nBILLING_WORKSPACE=w\n',
    )
    const { billing } = read({ BILLING_CONCURRENCY: '2', BILLING_TIMEOUT_SECONDS: '' })
    expect(billing).toMatchObject({ concurrency: 2, timeoutSeconds: 9, workspace: 'acc_1' })
    expect(problemsOf({ ...enough, BILLING_TOKEN: ' ' })).toEqual([
      'BILLING_TOKEN is not set; set it to the API token, or BILLING_TOKEN_FILE to a file that contains it.',
    ])
  })

  it('name `init` where nothing was set yet, and the page of variables where one is wrong', () => {
    const hintOf = (env: Record<string, string>) => {
      try {
        readSettings({ env, cwd })
      } catch (error) {
        return (error as SettingsError).hint
      }
      return undefined
    }
    expect(hintOf({})).toContain('npx connector init')
    expect(hintOf({ ...enough, BILLING_TOKEN: ' ' })).toContain('docs/configuration.md')
  })

  it('refuse http to another machine unless allowed, and take it to this one', () => {
    for (const address of ['http://api.example.test', 'http://127.0.0.1.example.test', 'http://10.0.0.1']) {
      expect(problemsOf({ ...enough, BILLING_BASE_URL: address })).toEqual([
        expect.stringMatching(/unencrypted http; use https/),
      ])
    }
    for (const address of ['http://127.0.0.1:8080', 'http://localhost:1', 'http://[::1]:1', 'http://127.1']) {
      expect(problemsOf({ ...enough, BILLING_BASE_URL: address })).toEqual([])
    }
    const allowed = read({ BILLING_BASE_URL: 'http://10.0.0.1', BILLING_ALLOW_HTTP: 'true' })
    expect(allowed.billing.baseUrl).toBe('http://10.0.0.1')
  })

  it('refuse an address with a password or a query, without repeating them', () => {
    for (const address of ['https://me:hunter2@api.example.test', 'https://api.example.test/?key=hunter2']) {
      const problems = problemsOf({ ...enough, BILLING_BASE_URL: address })
      expect(problems).toHaveLength(1)
      expect(problems[0]).not.toContain('hunter2')
    }
  })

  it('keep paths of .env and of defaults with their file, and take those of the environment from the caller', () => {
    writeFileSync(join(cwd, '.env'), 'CONNECTOR_OUT_DIRS=out:/srv/out\n')
    const settings = read({ INIT_CWD: '/elsewhere' })
    expect(settings.dataDir).toBe(join(cwd, 'data'))
    expect(settings.outDirs).toEqual([join(cwd, 'out'), '/srv/out'])
    expect(read({ INIT_CWD: '/elsewhere', CONNECTOR_DATA_DIR: './d' }).dataDir).toBe('/elsewhere/d')
  })

  it('take a host and a port to serve metrics on, and one of the words for logs', () => {
    const served = (CONNECTOR_METRICS_ADDRESS: string) => read({ CONNECTOR_METRICS_ADDRESS }).metricsAddress
    expect(served('127.0.0.1:9464')).toEqual({ host: '127.0.0.1', port: 9464 })
    expect(served('[::1]:0')).toEqual({ host: '::1', port: 0 })
    const problems = problemsOf({
      ...enough,
      CONNECTOR_METRICS_ADDRESS: '9464',
      CONNECTOR_LOG_LEVEL: 'loud',
    })
    expect(problems).toEqual([
      expect.stringContaining(
        '("9464") in the environment is not a host with a port up to 65535; use one like',
      ),
      expect.stringContaining('("loud") in the environment is not one of debug, info, warn, error; use'),
    ])
  })

  it('know the files that secrets came from, and no others', () => {
    const key = join(cwd, 'key')
    writeFileSync(key, 'k')
    writeFileSync(join(cwd, '.env'), 'BILLING_CONCURRENCY=7\n')
    expect(read({ CONNECTOR_HASH_KEY_FILE: key }).secretFiles).toEqual([key])
    writeFileSync(join(cwd, '.env'), 'TEMPORAL_API_KEY=x\nWAREHOUSE_URL=postgres://u:p@h/d\n')
    expect(read().secretFiles).toEqual([join(cwd, '.env')])
  })

  it('keep test mode on a task queue of its own', () => {
    const { billing, taskQueue } = read({ BILLING_TEST_MODE: 'true' })
    expect({ testMode: billing.testMode, taskQueue }).toEqual({
      testMode: true,
      taskQueue: 'billing-acc_1-test',
    })
  })

  it('refuse two tokens, a missing or empty token file, and a token that cannot be in a header, never showing it', () => {
    const file = join(cwd, 'token')
    writeFileSync(file, '')
    const { BILLING_TOKEN: _, ...without } = enough
    const problemsWith = (BILLING_TOKEN_FILE: string) => problemsOf({ ...without, BILLING_TOKEN_FILE })
    expect(problemsOf({ ...enough, BILLING_TOKEN_FILE: file })).toEqual([expect.stringContaining('both set')])
    expect(problemsWith(file)).toEqual([
      `BILLING_TOKEN_FILE names ${file}, which is empty; put the value in it and nothing else.`,
    ])
    expect(problemsWith(`${file}2`)).toEqual([expect.stringContaining('token2, which cannot be read')])
    writeFileSync(file, 'two words')
    expect(problemsWith(file)).toEqual([
      `BILLING_TOKEN (not shown) in ${file} contains a space, a line break or a non-ASCII character; set it exactly as issued.`,
    ])
    expect(problemsOf({ ...enough, BILLING_TOKEN: 'two words' })).toEqual([
      expect.stringMatching(/^BILLING_TOKEN \(not shown\) in the environment contains a space/),
    ])
  })

  it('name every problem although others are between two variables or in files', () => {
    const problems = problemsOf({
      BILLING_BASE_URL: 'http://api.example.test',
      BILLING_TOKEN_FILE: '/nowhere/token',
      BILLING_CONCURRENCY: '0',
      NOTIFY_URL: 'http://hooks.example.test/s3cret',
    })
    expect(new Set(problems.map((problem) => problem.split(' ')[0]))).toEqual(
      new Set([
        'BILLING_BASE_URL',
        'BILLING_CONCURRENCY',
        'BILLING_TOKEN_FILE',
        'BILLING_WORKSPACE',
        'NOTIFY_URL',
      ]),
    )
    expect(problems.join(' ')).not.toContain('s3cret')
  })

  it.each(['not an address, hunter2', 'postgres://u:hunter2%rd@h/d'])(
    'refuse a warehouse that is not a PostgreSQL address, without its password (%s)',
    (address) => {
      const [problem] = problemsOf({ ...enough, WAREHOUSE_URL: address })
      expect(problem).toContain('postgres:// or postgresql://')
      expect(problem).not.toMatch(/hunter2|%rd/)
      expect(read({ WAREHOUSE_URL: 'postgres://u:p@h/d' }).warehouseUrl).toBe('postgres://u:p@h/d')
    },
  )

  it('take a secret from the file that its variable names, and never show it', () => {
    writeFileSync(join(cwd, 'warehouse'), 'postgres://u:hunter2@db/x\n')
    writeFileSync(join(cwd, '.env'), 'WAREHOUSE_URL_FILE=warehouse\n')
    expect(read().warehouseUrl).toBe('postgres://u:hunter2@db/x')
    const listed = listSettings({ env: enough, cwd }).find(({ name }) => name === 'WAREHOUSE_URL')
    expect(listed).toMatchObject({ value: 'not shown', from: join(cwd, '.env') })
    expect(describeSettings()).toContain('`WAREHOUSE_URL_FILE`')
  })

  it('hand .env on to Temporal', () => {
    writeFileSync(join(cwd, '.env'), 'TEMPORAL_ADDRESS=127.0.0.1:9999\n')
    const { environment } = read({ TEMPORAL_ADDRESS: '' })
    const config = loadClientConnectConfig({ overrideEnvVars: environment, disableFile: true })
    expect(config.connectionOptions.address).toBe('127.0.0.1:9999')
  })
})

describe('the list of settings', () => {
  it('shows what is in force and from where, and no secret', () => {
    writeFileSync(join(cwd, '.env'), 'BILLING_CONCURRENCY=7\nWAREHOUSE_URL=postgres://u:hunter2@h/d\n')
    const list = listSettings({ env: { ...enough, CONNECTOR_HASH_KEY: 'hunter2' }, cwd })
    const shown = new Map(list.map(({ name, value, from }) => [name, [value, from]]))
    expect(shown.get('BILLING_CONCURRENCY')).toEqual(['"7"', join(cwd, '.env')])
    expect(shown.get('BILLING_TIMEOUT_SECONDS')).toEqual(['"30"', 'default'])
    expect(shown.get('BILLING_TOKEN')).toEqual(['not shown', 'environment'])
    expect(JSON.stringify(list)).not.toMatch(/hunter2|t0ken/)
  })

  it('leaves no variable out of the page', () => {
    const page = describeSettings()
    for (const [name] of described) expect(page).toContain(`- \`${name}\` `)
    const required = described.filter(
      ([, { default: text, otherwise }]) => text === undefined && otherwise === undefined,
    )
    expect(required.map(([name]) => name)).toEqual(Object.keys(enough))
    const optional = Object.entries(variables.shape).filter(([, kind]) => kind.safeParse(undefined).success)
    for (const [name] of optional) expect(page).toMatch(new RegExp(`^- \`${name}\` .*; default:? `, 'm'))
    expect(page).not.toContain('undefined')
  })
})
